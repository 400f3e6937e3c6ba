import ResumableUpload

/// Why a request with content got no interim response (104), or could not be resumed: the decisions of the server.
struct UploadExplanation: Sendable, Hashable {
    enum Course: Sendable, Hashable {
        /// No decision about the content.
        case undecided
        case plain(Creation.PlainReason)
        /// An upload resource was created, for a part of the representation or all of it.
        case creation(isPart: Bool)
        /// The content is appended to an upload.
        case append
    }

    /// Why no offsets are reported while content is received.
    enum ProgressObstacle: Sendable, Hashable {
        /// The interop version does not have such responses.
        case version(Int)
        /// Nothing is acknowledged before the digest was compared.
        case contentDigest
    }

    var course = Course.undecided
    /// Whether 104 may be sent; `nil` if that was not evaluated.
    var permission: InterimPermission?
    var progressObstacle: ProgressObstacle?
    /// The interim responses with the URL of the upload, and those with an offset.
    var announcements = 0
    var offsets = 0
    /// The interim responses that the connection could not accept.
    var unwritable = 0
    /// The code of the final response, if it is an error.
    var refusal: String?

    /// Why no interim response was sent; `nil` if one was sent.
    var omission: InterimOmission? {
        guard announcements + offsets == 0 else { return nil }
        switch course {
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
        switch course {
        case .undecided, .append: ""
        case .plain(.unannounced), .creation(isPart: false):
            "; not resumable: no response reports the URL of the upload before the end"
        case .plain: "; not resumable"
        case .creation(isPart: true): "; resumable: the final response has the URL of the upload"
        }
    }
}
