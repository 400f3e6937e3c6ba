import HTTPSemantics

/// A request that the tested client sent to a scripted server, and the data of the response to it.
struct ScriptedRequest: FieldSection, Sendable {
    enum Kind: String, Sendable {
        case creation
        /// A request with content and without fields of the draft.
        case plain
        /// A request for the offset of an upload.
        case retrieval
        case append
        case cancellation
        /// A request with `OPTIONS` that does not create an upload.
        case discovery
        case download
        /// A request that is of none of the other kinds.
        case stray
    }

    /// The number of the request, from 1, in the order of arrival.
    let number: Int
    let connection: Int
    /// The number of the run of the command, from 1.
    let run: Int
    /// The index of the origin: 0 for the origin of the command's URL, 1 for the other origin.
    let origin: Int
    let method: String
    let target: String
    let fields: Fields
    let kind: Kind
    /// The number of requests of this kind that the scenario has received so far, including this one.
    let count: Int
    /// The version of the draft that the request states.
    let profile: Profile
    /// The number of the upload to which the request belongs, from 1.
    var upload: Int?
    /// The time of arrival, in monotonic nanoseconds.
    let arrivedAt: Int64
    /// The offset in the representation at which the content starts.
    var start: Int64 = 0
    /// The number of bytes of content that were read.
    var received: Int64 = 0
    /// The number of bytes that the server discarded, for example after the response.
    var discarded: Int64 = 0
    /// Whether the content was read to its end.
    var isContentComplete = false
    /// The time at which content was last read, in monotonic nanoseconds.
    var lastReadAt: Int64 = 0
    /// The offset at which the content differs from the file; `nil` if it does not differ.
    var differsAt: Int64?
    /// The status of the final response; `nil` if no final response was sent.
    var status: Int?
    /// The offset that the final response reported.
    var reportedOffset: Int64?
    /// Whether the final response reported that the upload is complete; `nil` if it did not report it.
    var isReportedComplete: Bool?
    /// The time at which the response was sent or the connection ended.
    var answeredAt: Int64?

    var offset: Int64? { integer("Upload-Offset") }
    var length: Int64? { integer("Upload-Length") }
    /// Whether the request states that its content completes the upload. In old versions of the draft the
    /// field has the inverse value.
    var isComplete: Bool? { boolean(profile.completenessName).map { $0 != profile.isInverse } }
    var contentLength: Int64? { single("Content-Length").flatMap { Int64($0) } }
    /// Whether the request contains credentials. Cookies are ignored, because they belong to a host, not to a port
    /// (RFC 6265 8.5).
    var hasCredentials: Bool { fields.contains("Authorization") || fields.contains("Proxy-Authorization") }

    /// Whether the head announces content.
    var hasContent: Bool { fields.contains("Transfer-Encoding") || (contentLength ?? 0) > 0 }
    /// Returns whether the content contains the byte at `offset` of the representation.
    func reaches(_ offset: Int64) -> Bool {
        hasContent && start <= offset && offset < start + (contentLength ?? .max / 2)
    }

    func isFirst(_ kind: Kind) -> Bool { self.kind == kind && count == 1 }

    /// A description for reports.
    var summary: String {
        let names = ["range", "if-range", "content-type", "content-length"]
        let shown = fields.filter { field in
            let name = field.name.lowercased()
            return name.hasPrefix("upload-") && name != "upload-draft-interop-version" || names.contains(name)
        }
        return (["\(method) \(target)"] + shown.map { "\($0.name): \($0.value)" }).joined(separator: ", ")
    }
}
