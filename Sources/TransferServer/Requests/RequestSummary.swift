import FoundationEssentials
import HTTPSemantics
import SystemCalls
import UploadStorage

/// The data of a finished request for log and metrics.
struct RequestSummary: Sendable {
    let id: RequestID
    let method: String
    let target: String
    /// The status of the response; `nil` if no response was sent.
    let status: Status?
    let code: String?
    /// The bytes of content received and sent.
    let received: Int64
    let sent: Int64
    let nanoseconds: Int64
    /// The reason why the request was interrupted; `nil` if it was not.
    let interruption: String?
    let origin: RequestOrigin
    let principal: String?
    let route: String
    /// The upload of the request. The log shows only a hash of its ID.
    let upload: UploadID?
    /// The durable offset of the upload; `nil` if it is unknown.
    let offset: Int64?
    let progress: UploadProgress
    let explanation: UploadExplanation?
    /// The exchange with the server to which the request was forwarded; `nil` if there was none.
    let forwarding: ForwardingReport?
    /// The check of the file before its publication; `nil` if there was none.
    let check: CheckReport?
    /// The part of `received` that the metrics have already counted.
    let countedReceived: Int64
}

/// The progress of uploads by one request, for the metrics.
struct UploadProgress: Sendable, Hashable {
    /// An upload resource was created.
    var hasCreated = false
    /// Content was appended to an upload that already had content.
    var hasResumed = false
    /// The representation of an upload is complete, and its target has responded.
    var hasCompleted = false
}

/// The ID of a request in logs: 64 random bits in hexadecimal.
struct RequestID: Sendable, Hashable, CustomStringConvertible {
    private let value: UInt64

    init() { value = KernelRandom().next() }

    var description: String {
        String(unsafeUninitializedCapacity: 16) { buffer in
            guard let start = buffer.baseAddress else { return 0 }
            value.writeHexadecimal(16, to: start)
            return 16
        }
    }
}

/// The stable code in the problem document of a response; `other` if a target has responded with a text that does not
/// look like a code. Log and metrics contain it.
struct ProblemCode: Decodable {
    private(set) var code: String?

    init?(of response: Response) {
        guard response.fields["Content-Type"] == ProblemDetails.mediaType, let bytes = response.content.bytes,
            let found = try? JSONDecoder().decode(ProblemCode.self, from: Data(bytes))
        else { return nil }
        self = found
        if let code, !Self.isValidLabel(code) { self.code = "other" }
    }

    /// Whether a code can be a label; a target can respond with any text as its code.
    static func isValidLabel(_ code: String) -> Bool {
        (1...64).contains(code.utf8.count)
            && code.utf8.allSatisfy { $0 == 0x2D || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
    }
}
