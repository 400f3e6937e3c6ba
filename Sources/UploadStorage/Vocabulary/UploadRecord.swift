import Digests
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The state of one upload at one moment.
package struct UploadRecord: Sendable, Hashable {
    package enum Phase: Sendable, Hashable {
        /// The upload waits for content or for the request that completes it.
        case receiving
        /// All content is received, and the target resource processes it.
        case processing
        /// The target resource has responded.
        case complete(Response)
        /// The upload is permanently unusable.
        case invalid(reason: String)
    }

    package var id: UploadID
    /// The properties that were saved at creation.
    package var upload: NewUpload
    /// The number of bytes that are stored durably.
    package var offset: Int64
    /// The length of the complete representation in bytes, once a request has announced it.
    package var length: Int64?
    package var phase: Phase
    /// The time of creation, in seconds of ``UploadStore/time``.
    package var createdAt: Int64
    /// The time of expiry, in seconds of ``UploadStore/time``; `nil` if the upload does not expire.
    package var expiresAt: Int64?

    package init(
        id: UploadID, upload: NewUpload, offset: Int64, length: Int64?, phase: Phase, createdAt: Int64,
        expiresAt: Int64?
    ) {
        self.id = id
        self.upload = upload
        self.offset = offset
        self.length = length
        self.phase = phase
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    /// Returns whether the upload has ended and its final response is no longer kept.
    func isNoLongerKept(at now: Int64) -> Bool {
        switch phase {
        case .receiving, .processing: false
        case .complete, .invalid: expiresAt.map { $0 <= now } ?? false
        }
    }
}

/// The properties of an upload that are known and saved when it is created.
package struct NewUpload: Sendable, Hashable {
    /// The principal that may use the upload, and against whose limits the upload counts.
    package var principal: String
    /// The method of the request that created the upload.
    package var method: Method
    /// The target resource, as a text that only the caller interprets.
    package var target: String
    /// The fields of the request that are needed to complete the upload. They are removed when it is complete or
    /// invalid.
    package var fields: Fields
    package var dialect: Dialect
    package var limits: UploadLimits
    /// The length of the complete representation in bytes, if the creation announced it.
    package var length: Int64?
    /// The digests of the representation that are calculated while its bytes arrive.
    package var digests: Set<DigestAlgorithm>
    /// The time of expiry, in seconds of ``UploadStore/time``; `nil` if the upload does not expire.
    package var expiresAt: Int64?

    package init(
        principal: String, method: Method, target: String, fields: Fields = [:], dialect: Dialect = .unversioned,
        limits: UploadLimits = UploadLimits(), length: Int64? = nil, digests: Set<DigestAlgorithm> = [],
        expiresAt: Int64? = nil
    ) {
        self.principal = principal
        self.method = method
        self.target = target
        self.fields = fields
        self.dialect = dialect
        self.limits = limits
        self.length = length
        self.digests = digests
        self.expiresAt = expiresAt
    }

    /// The properties that are kept once the upload is complete or invalid. They are needed to authorize later requests
    /// and to send the final response again.
    package var withoutFields: NewUpload {
        var remaining = self
        remaining.fields = [:]
        remaining.digests = []
        return remaining
    }
}

/// The name of an upload: 128 random bits from the kernel. The name alone gives access to the upload.
public struct UploadID: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    /// Creates a random ID.
    public init() {
        let generator = KernelRandom()
        high = generator.next()
        low = generator.next()
    }

    init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// Parses the form of ``text``, exactly: 32 lower-case hexadecimal digits.
    public init?(parsing text: some StringProtocol) {
        guard text.utf8.count == 32 else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        for digit in text.utf8 {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: return nil
            }
            words = (words.0 << 4 | words.1 >> 60, words.1 << 4 | UInt64(value))
        }
        (high, low) = words
    }

    package init?(bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The 16 bytes, as the catalog stores them.
    package var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            for index in 0..<8 {
                buffer[index] = UInt8(truncatingIfNeeded: high >> (56 - 8 * index))
                buffer[index + 8] = UInt8(truncatingIfNeeded: low >> (56 - 8 * index))
            }
            count = 16
        }
    }

    /// A text that identifies the upload and gives no access to it: 32 lower-case hexadecimal digits.
    package var fingerprint: String { fingerprint(bytes: 16) }

    private func fingerprint(bytes count: Int) -> String {
        var digest = RunningDigest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        return Array(digest.finalized().prefix(count)).hexadecimal
    }

    /// The secret in the form of URLs: 32 lower-case hexadecimal digits.
    public var text: String {
        String(unsafeUninitializedCapacity: 32) { buffer in
            guard let start = buffer.baseAddress else { return 0 }
            high.writeHexadecimal(16, to: start)
            low.writeHexadecimal(16, to: start + 16)
            return 32
        }
    }
}

extension UploadID: CustomStringConvertible, CustomDebugStringConvertible {
    /// A text for logs that identifies the upload and gives no access.
    public var description: String { "upload:" + fingerprint(bytes: 4) }

    /// A short form for logs, which gives no access.
    public var debugDescription: String { description }
}
