// A program that embeds the server needs no other import.
@_exported import HTTPSemantics
@_exported import ResumableUpload
@_exported import SystemCalls
@_exported import TLS
@_exported import UploadStorage
