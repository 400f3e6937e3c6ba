// The public declarations of this module use these types of other modules. They are exported, so that a program that
// uses the client needs no other import.
@_exported import enum HTTPSemantics.DigestAlgorithm
@_exported import struct HTTPSemantics.Fields
@_exported import struct HTTPSemantics.Method
@_exported import struct HTTPSemantics.Status
@_exported import struct HTTPTransport.ClientCertificate
@_exported import enum HTTPTransport.HTTPVersion
@_exported import struct HTTPTransport.RequestMetrics
@_exported import enum HTTPTransport.SourceError
@_exported import protocol HTTPTransport.UploadSource
@_exported import enum ResumableUpload.CreationStyle
@_exported import enum ResumableUpload.Dialect
@_exported import struct ResumableUpload.RetryPolicy
@_exported import struct SystemCalls.Errno
