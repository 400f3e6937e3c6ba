import ResumableUpload

/// The decisions of the server that explain why a request with content got no interim response (104), or could not be
/// resumed.
struct UploadExplanation: Sendable, Hashable {
    enum Handling: Sendable, Hashable {
        /// The server has not made a decision about the content.
        case undecided
        case plain(Creation.PlainReason)
        /// An upload resource was created, for a part of the representation or all of it.
        case creation(isPart: Bool)
        /// The content is appended to an upload.
        case append
    }

    /// The reason why no offsets are reported while content is received.
    enum ProgressObstacle: Sendable, Hashable {
        /// The interop version has no interim responses with offsets.
        case version(Int)
        /// Nothing is acknowledged before Content-Digest has been verified.
        case contentDigest
    }

    var handling = Handling.undecided
    /// Whether 104 may be sent; `nil` if that was not evaluated.
    var permission: InterimPermission?
    var progressObstacle: ProgressObstacle?
    /// The number of interim responses with the URL of the upload.
    var announcements = 0
    /// The number of interim responses with an offset.
    var offsets = 0
    /// The number of interim responses that the connection could not accept.
    var unwritable = 0
    /// The code of the final response, if it is an error.
    var refusal: String?

    /// The reason why no interim response was sent; `nil` if one was sent.
    var omission: InterimOmission? {
        guard announcements + offsets == 0 else { return nil }
        switch handling {
        case .undecided: return refusal.map { .refused($0) } ?? .undecided
        case .plain(.unannounced): return withheld ?? .plain(.unannounced)
        case .plain(let reason): return .plain(reason)
        case .creation, .append:
            if unwritable > 0 { return .notWritable }
            if let withheld { return withheld }
            if let refusal { return .refused(refusal) }
            switch progressObstacle {
            case .version(let version): return .noProgressInVersion(version)
            case .contentDigest: return .contentDigest
            case nil: return .notDue
            }
        }
    }

    private var withheld: InterimOmission? {
        if case .withheld(let obstacle) = permission { .withheld(obstacle) } else { nil }
    }

    /// The explanation on one line of printable ASCII.
    var sentence: String {
        guard let omission else {
            let sentOffsets = offsets == 1 ? "an offset" : "\(offsets) offsets"
            let parts = [announcements > 0 ? "the upload's URL" : nil, offsets > 0 ? sentOffsets : nil]
            return "104 sent: " + parts.compactMap { $0 }.joined(separator: " and ")
        }
        return "no 104: \(omission.sentence)\(resumability)"
    }

    private var resumability: String {
        switch handling {
        case .undecided, .append: ""
        // The omission has the same reason.
        case .plain(.unannounced) where omission == .plain(.unannounced): "; not resumable"
        case .plain(.unannounced), .creation(isPart: false):
            "; not resumable: no response reports the URL of the upload before the end of the request"
        case .plain: "; not resumable"
        case .creation(isPart: true): "; resumable: the final response has the URL of the upload"
        }
    }
}

/// The reason why a request with content got no interim response.
enum InterimOmission: Sendable, Hashable {
    case withheld(InterimObstacle)
    case plain(Creation.PlainReason)
    /// The final response came first: an error with this code.
    case refused(String)
    case noProgressInVersion(Int)
    case contentDigest
    /// The peer did not read.
    case notWritable
    /// The content ended before an offset had to be reported.
    case notDue
    /// The request ended before any decision.
    case undecided

    /// The stable code for metrics and log.
    var word: String {
        switch self {
        case .withheld(let obstacle): obstacle.rawValue
        case .plain(let reason): reason.rawValue
        case .refused: "refused"
        case .noProgressInVersion: "no-progress-in-version"
        case .contentDigest: "content-digest"
        case .notWritable: "not-writable"
        case .notDue: "not-due"
        case .undecided: "undecided"
        }
    }

    /// All codes.
    static let words: [String] =
        InterimObstacle.allCases.map(\.rawValue) + Creation.PlainReason.allCases.map(\.rawValue)
        + [.refused(""), .noProgressInVersion(0), .contentDigest, .notWritable, .notDue, .undecided].map(
            \InterimOmission.word)

    /// An explanation for people in printable ASCII.
    var sentence: String {
        switch self {
        case .withheld(.oldHTTP):
            "the request uses HTTP/1.0, which has no interim responses; a proxy may have changed the version"
        case .withheld(.turnedOff): "the server runs with --interim off"
        case .withheld(.declined): "the request has Onward-Interim: off"
        case .withheld(.noVersion):
            "the request has no Upload-Draft-Interop-Version, and the draft forbids 104 without this field"
        case .withheld(.unusableVersion): "Upload-Draft-Interop-Version is not a number from \(Dialect.interopVersions)"
        case .plain(.noCompleteness): "the request has no \(UploadFieldName.completeInEveryVersion)"
        case .plain(.invalidCompleteness):
            "\(UploadFieldName.completeInEveryVersion) is not ?0 or ?1 on one line, and is ignored"
        case .plain(.belowMinSize): "the upload is smaller than the minimum of resumable uploads (--min-size)"
        case .plain(.unannounced): "no response could report the URL of the upload"
        case .refused(let code): "the request was refused (\(code.printableASCII))"
        case .noProgressInVersion(let version): "interop version \(version) has no 104 for offsets"
        case .contentDigest: "nothing is acknowledged before Content-Digest has been verified"
        case .notWritable: "the connection was not writable: the client, or a proxy, does not read while it sends"
        case .notDue: "the server sends the first offset after 8 MiB or one second, and the content ended before that"
        case .undecided: "the request ended before the server decided how to handle it"
        }
    }
}

extension String {
    /// The first 64 characters, with "?" in place of each character that is not printable ASCII.
    fileprivate var printableASCII: String {
        String(String.UnicodeScalarView(unicodeScalars.prefix(64).map { (0x20..<0x7F).contains($0.value) ? $0 : "?" }))
    }
}
