import Foundation
import HTTPSemantics
import SystemCalls

/// The reason why a transfer failed or was interrupted.
public struct TransferError: Error, Sendable {
    /// The stable code of the error; the same in events, logs and the command line's output.
    #if hasAttribute(nonexhaustive)
        @nonexhaustive
    #endif
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// Paused by ``Transfer/pause()``, by its progress object or by canceling the task that awaited it.
        case paused
        /// Ended by ``Transfer/cancel()``. If the error has ``TransferError/resumeData``, the deletion is not
        /// confirmed, and the message contains the reason.
        case cancelled

        /// The name of the host has no address, or could not be resolved.
        case hostNotFound = "host-not-found"
        /// No connection to the server could be established.
        case cannotConnect = "cannot-connect"
        /// The proxy could not be used, or reported a temporary failure.
        case proxyFailed = "proxy-failed"
        /// The proxy refused permanently, with ``TransferError/status``.
        case proxyRefused = "proxy-refused"
        /// No TLS connection could be established, for example because the certificate of the server is not trusted.
        case insecureConnection = "insecure-connection"
        /// The connection was closed before the response was complete.
        case connectionLost = "connection-lost"
        /// No byte was transferred during the stall timeout.
        case timedOut = "timed-out"
        /// The server reported a temporary failure (408, 423, 425, 429, and 5xx except 501
        /// and 505) in every attempt.
        case serverUnavailable = "server-unavailable"
        /// The responses to a download were not the requested resource, but for example the page of a captive portal.
        /// The bytes that were received before are kept.
        case unexpectedResponse = "unexpected-response"
        /// The server rejected the offset that it had reported, in every attempt.
        case offsetConflict = "offset-conflict"

        /// The server rejected the request with a status that does not change if the request is sent again.
        case refused
        /// A condition of the request, such as `If-Match` or `If-None-Match: *`, is not fulfilled (412).
        case preconditionFailed = "precondition-failed"
        /// The server or the proxy requires other credentials (401, 403 or 407).
        case unauthorized
        /// The upload no longer exists on the server, or its lifetime has passed. It cannot be resumed: begin a new
        /// upload of the same source. A ``TransferStore`` has removed the entry of the upload.
        case gone
        /// The upload is larger than the server accepts, or the download larger than its caller accepts.
        case tooLarge = "too-large"
        /// The server reported a smaller offset than before: bytes that it had acknowledged are lost.
        case offsetLost = "offset-lost"
        /// The server reported an offset beyond the end of the representation.
        case offsetImpossible = "offset-impossible"
        /// The server named two upload resources for one upload.
        case locationChanged = "location-changed"
        /// The upload resource has another origin, or an http URI although the request used https.
        case locationUnusable = "location-unusable"
        /// The bytes of the representation do not match their digest.
        case digestMismatch = "digest-mismatch"
        /// The server does not support resumable uploads, and the upload needs more than one request.
        case resumptionUnsupported = "resumption-unsupported"
        /// The server redirected the request too often.
        case tooManyRedirects = "too-many-redirects"
        /// A redirection from https to http.
        case insecureRedirect = "insecure-redirect"
        /// The responses of the server violate the protocol.
        case protocolViolation = "protocol-violation"

        /// The file does not exist or is not a regular file.
        case noSuchSource = "no-such-source"
        /// The source could not be read at the position that has to be sent next. The ``TransferError/underlying`` error
        /// is that of the source or of its sequence.
        case sourceUnavailable = "source-unavailable"
        /// The source has changed since the upload began, or the representation of a ``DownloadStream`` has changed after
        /// bytes were delivered.
        case sourceChanged = "source-changed"
        /// The destination or its partial file cannot be written.
        case destinationUnusable = "destination-unusable"
        /// The storage directory of the client, the directory of a store, or a file with resume data cannot be used.
        case storageUnusable = "storage-unusable"

        /// The data is not resume data, or has an unsupported version.
        case resumeDataInvalid = "resume-data-invalid"
        /// Later resume data of the same transfer was used, the transfer has ended, or another transfer is running with
        /// this resume data, in this process or in another one.
        case resumeDataUsed = "resume-data-used"
        /// Another transfer, in this process or in another one, is running the entry of a ``TransferStore``.
        case inUse = "in-use"

        /// A URI, method or field that cannot be sent, or a proxy's URL that cannot be used.
        case invalidRequest = "invalid-request"
        /// The `authorize` closure threw an error.
        case authorizationFailed = "authorization-failed"
        /// The client was shut down.
        case shutDown = "shut-down"
        /// An internal error of this library.
        case internalFailure = "internal-failure"
    }

    /// The reason, as a stable code.
    public var code: Code
    /// A sentence for people. It names no upload resource, no query and no credentials.
    public var message: String
    /// The status of the response that caused the error, if there is one.
    public var status: Status?
    /// The response that caused the error, with at most 1 MiB of its content.
    public var response: TransferResponse?
    /// The data to resume the transfer with, even in another process; `nil` if it cannot be resumed.
    public var resumeData: ResumeData?
    /// The error that caused this one: a ``CurlError`` of libcurl, an `Errno` of the system, or the error that a
    /// closure (``TransferClient/Configuration/authorize``, ``TransferClient/Configuration/refreshCredentials``), the
    /// sequence of an upload or its ``UploadSource`` threw.
    public var underlying: (any Error)?

    /// - Parameters:
    ///   - code: the reason.
    ///   - message: a sentence for people, without secrets.
    ///   - status: the status of the response that caused the error; by default that of `response`.
    ///   - response: the response that caused the error.
    ///   - resumeData: the data to resume the transfer with.
    ///   - underlying: the error that caused this one.
    public init(
        _ code: Code, _ message: String, status: Status? = nil, response: TransferResponse? = nil,
        resumeData: ResumeData? = nil, underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.status = status ?? response?.status
        self.response = response
        self.resumeData = resumeData
        self.underlying = underlying
    }

    /// Whether the same transfer can succeed later without any change: it was paused or interrupted, not rejected. If
    /// there is ``resumeData``, it resumes; otherwise it starts again.
    public var canRetry: Bool {
        switch code {
        case .paused, .hostNotFound, .cannotConnect, .proxyFailed, .connectionLost, .timedOut, .serverUnavailable,
            .unexpectedResponse, .inUse, .shutDown:
            true
        default: false
        }
    }
}

extension TransferError: CustomStringConvertible {
    /// The code, the message and the description of the underlying error.
    public var description: String {
        underlying.map { "\(code.rawValue): \(message) (\($0))" } ?? "\(code.rawValue): \(message)"
    }
}

extension TransferError: LocalizedError {
    /// The message, which is also the `localizedDescription`.
    public var errorDescription: String? { message }

    /// The system's text of an underlying `Errno`, or the description of any other underlying error; `nil` if there is none.
    public var failureReason: String? { underlying.map { ($0 as? Errno)?.text ?? "\($0)" } }
}

/// An error of libcurl.
public struct CurlError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The message of libcurl. It can name the host and the port, and never has credentials.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension TransferError {
    /// The code of `NSURLErrorDomain` with the same meaning.
    public var urlErrorCode: Int {
        switch code {
        case .paused, .cancelled, .shutDown: -999
        case .timedOut: -1001
        case .resumeDataInvalid, .resumeDataUsed, .inUse: -1002
        case .hostNotFound, .proxyFailed: -1003
        case .cannotConnect: -1004
        case .proxyRefused: status == 407 ? -1013 : -1004
        case .connectionLost: -1005
        case .tooManyRedirects: -1007
        case .insecureRedirect, .locationUnusable: -1010
        case .serverUnavailable, .unexpectedResponse, .offsetConflict, .refused, .preconditionFailed, .offsetLost,
            .offsetImpossible,
            .locationChanged,
            .resumptionUnsupported, .protocolViolation:
            -1011
        case .unauthorized: status == 403 ? -1102 : -1013
        case .authorizationFailed: -1013
        case .insecureConnection: -1200
        case .gone, .noSuchSource: -1100
        case .tooLarge: -1103
        case .sourceUnavailable, .sourceChanged: -3001
        case .destinationUnusable: -3003
        case .storageUnusable: -3000
        case .invalidRequest: -1000
        case .digestMismatch: -1015
        case .internalFailure: -1
        }
    }
}
