import HTTPSemantics

/// A request that the client made, and what became of it.
struct ScriptedRequest: FieldSection, Sendable {
    enum Kind: String, Sendable {
        case creation
        /// With content, and without a word of the draft.
        case plain
        case retrieval
        case append
        case cancellation
        case discovery
        case download
        /// To a place that it has no reason to go to.
        case stray
    }

    /// From 1, in the order of arrival.
    let number: Int
    let connection: Int
    /// Which run of the command made it, from 1.
    let run: Int
    /// 0 for the server that the command was given, 1 for the other one.
    let origin: Int
    let method: String
    let target: String
    let fields: Fields
    let kind: Kind
    /// How many of this kind there were, this one included.
    let count: Int
    /// The version that it speaks.
    let profile: Profile
    /// The upload that it is about, from 1.
    var upload: Int?
    /// Monotonic nanoseconds.
    let arrivedAt: Int64
    /// Where in the representation its content starts.
    var start: Int64 = 0
    /// Bytes of content that were read.
    var received: Int64 = 0
    /// Bytes of it that came after everything was said.
    var discarded: Int64 = 0
    /// Whether the content came to its end.
    var isContentComplete = false
    /// When the last of it was read.
    var lastReadAt: Int64 = 0
    /// Where the content differed from the file.
    var differsAt: Int64?
    /// The final status, where one was sent.
    var status: Int?
    /// The offset that the final response reported.
    var toldOffset: Int64?
    /// What it reported of completeness.
    var toldComplete: Bool?
    /// When the response was sent or the connection ended.
    var answeredAt: Int64?

    var offset: Int64? { integer("Upload-Offset") }
    var length: Int64? { integer("Upload-Length") }
    /// What it says of completeness, in its own version's way.
    var isComplete: Bool? { boolean(profile.completenessName).map { $0 != profile.isInverse } }
    var contentLength: Int64? { single("Content-Length").flatMap { Int64($0) } }
    /// Cookies are those of a host, whatever the port (RFC 6265 section 8.5).
    var carriesCredentials: Bool { fields.contains("Authorization") || fields.contains("Proxy-Authorization") }
    /// A browser's question before the request proper, which cannot have fields of its own.
    var isPreflight: Bool { method == "OPTIONS" && fields.contains("Access-Control-Request-Method") }

    /// Whether there is content to come, as far as the head reports.
    var bearsContent: Bool { fields.contains("Transfer-Encoding") || (contentLength ?? 0) > 0 }
    /// Whether it sends the byte at `offset` of the representation.
    func reaches(_ offset: Int64) -> Bool {
        bearsContent && start <= offset && offset < start + (contentLength ?? .max / 2)
    }

    func isFirst(_ kind: Kind) -> Bool { self.kind == kind && count == 1 }

    /// For a person.
    var summary: String {
        let names = ["range", "if-range", "content-type", "content-length"]
        let shown = fields.filter { field in
            let name = field.name.lowercased()
            return name.hasPrefix("upload-") && name != "upload-draft-interop-version" || names.contains(name)
        }
        return (["\(method) \(target)"] + shown.map { "\($0.name): \($0.value)" }).joined(separator: ", ")
    }
}
