import HTTPSemantics
import ResumableUpload
import UploadStorage

/// The resources below one prefix of the URL space, as the upload protocol sees them: they take a representation, whole,
/// and answer.
///
/// The server speaks the protocol and asks its ``Authorizer``; a handler never sees parts, offsets or interruptions. Every call comes on a thread of
/// its own for the connection and may block. Calls for different requests run at the same time.
public protocol TargetHandler: Sendable {
    /// The methods that a resource knows, for `Allow`.
    func methods(of target: Target) -> [Method]

    /// Decides about a representation before its content arrives. Called for every request with content, resumable or
    /// not, when the upload would be created.
    func accept(_ proposal: UploadProposal) -> Acceptance

    /// Whether `complete` may be called again for the same upload after the process died in it.
    ///
    /// Where it is `false` an upload whose completion was interrupted that way ends with status 500; where it is `true`
    /// the client's next completing request calls it again.
    var completionIsRepeatable: Bool { get }

    /// Names of the fields of the creating request that ``complete(_:)`` reads; the representation metadata by default.
    ///
    /// Only these are stored with an upload, until it is complete or invalid, together with those that the server itself
    /// needs (`Repr-Digest`, `Want-Repr-Digest`). Fields that carry credentials, such as `Authorization` and `Cookie`, are
    /// never stored, declared or not. A creation with more than 16,384 bytes to store is refused with status 431.
    var storedFields: [String] { get }

    /// What is stored of the fields that ``storedFields`` names: all of them, as they are, by default. A handler that reads
    /// only a part of a value can leave out the rest here. ``complete(_:)`` gets what this returns.
    /// - Parameter fields: of the request, those that are declared and carry no credentials.
    func storedPart(of fields: Fields) -> Fields

    /// Whether ``complete(_:)`` reads the URL's query, which is stored then. `false` by default: queries often carry
    /// credentials. ``accept(_:)`` and ``respond(to:)`` always get the query.
    var storesQuery: Bool { get }

    /// The representation is whole and durable; gives the final answer. Called at most once for an upload, but for
    /// `completionIsRepeatable`.
    /// - Throws: anything; the client then gets 500, as the final answer.
    func complete(_ upload: ReceivedUpload) throws -> TargetOutcome

    /// Answers a request that carries no representation: `GET`, `HEAD`, `DELETE` and whatever else the handler knows.
    func respond(to request: TargetRequest) -> TargetAnswer
}

extension TargetHandler {
    public var completionIsRepeatable: Bool { false }
    public var storedFields: [String] {
        ["Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition"]
    }
    public func storedPart(of fields: Fields) -> Fields { fields }
    public var storesQuery: Bool { false }
}

/// A resource below a handler's prefix.
public struct Target: Sendable, Hashable {
    /// The whole path of the URL, percent-encoded in one canonical way.
    public let path: String
    /// The decoded segments behind the handler's prefix.
    public let segments: [String]
    /// Whether the path ends with a slash (or is the prefix itself), as that of a collection.
    public let isCollection: Bool
    /// The URL's query as it was sent, without the question mark.
    public let query: String?
    /// All decoded segments of the path.
    let location: PathSegments

    /// Path and query, from which the target is found again.
    var reference: String { path + (query.map { "?" + $0 } ?? "") }

    var withoutQuery: Target {
        Target(path: path, segments: segments, isCollection: isCollection, query: nil, location: location)
    }
}

/// What is known of a representation before its content.
public struct UploadProposal: Sendable {
    public let target: Target
    public let method: Method
    /// Who asks.
    public let principal: String
    /// The request's fields.
    public let fields: Fields
    /// Length of the whole representation in bytes, where the request told it.
    public let length: Int64?
    /// Whether whoever asks may replace what exists; otherwise the representation has to become something new.
    public let mayReplace: Bool
}

/// A handler's decision about a proposal.
public enum Acceptance: Sendable {
    case accept
    /// The final answer; nothing is created and no content is read.
    case refuse(FinalResponse)
}

/// How a whole representation is disposed of.
public enum TargetOutcome: Sendable {
    /// The handler has used the bytes; they are removed, and this is the answer.
    case respond(FinalResponse)
    /// The store publishes the bytes as a file in one step.
    case publish(Publication)
}

/// A request without a representation.
public struct TargetRequest: Sendable {
    public let target: Target
    public let method: Method
    public let principal: String
    public let fields: Fields
    /// What stands before the server's paths where the client sees them. It is put before those in `Location` and
    /// `Content-Location` by the server.
    public let base: PublicBase
}

/// A handler's answer to such a request. To a safe method without Cache-Control among its fields the server adds
/// ``ServerConfiguration/cacheControl`` for files and `no-cache` for all else, with `private` if the request would have been
/// refused without credentials.
public enum TargetAnswer: Sendable {
    case response(FinalResponse)
    /// A published file: the server evaluates conditions and ranges, and sends its bytes. `fields` go with 200, 206 and
    /// 304 responses; the validators are added.
    case file(PublishedFile, fields: Fields)
    /// Content that is produced while it is sent: chunked, or to HTTP/1.0 clients until the connection ends.
    case stream(status: Status, fields: Fields, any StreamedContent)
}
