// A program that uses the client needs no other import.
@_exported import HTTPSemantics
@_exported import ResumableUpload
@_exported import SystemCalls
