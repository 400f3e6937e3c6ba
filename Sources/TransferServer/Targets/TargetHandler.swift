import FoundationEssentials
import HTTPSemantics
import ResumableUpload
import UploadStorage

/// A handler of the resources below one prefix of the URL space. It receives complete representations and responds.
///
/// The server implements the upload protocol and calls its ``Authorizer``; a handler never gets parts, offsets or
/// interruptions. Calls are concurrent for different requests. Each connection has its own thread, on which the methods
/// run: they may block, and asynchronous methods may await anything. An implementation need not be `async`.
///
/// When the server stops, a call in progress can continue for ``ServerConfiguration/drainTimeout``. Then its task is
/// canceled, and the server waits for its return for at most ``StoreConfiguration/processingWait``.
public protocol TargetHandler: Sendable {
    /// The methods that a resource supports, for `Allow`.
    func methods(of target: Target) -> [Method]

    /// Accepts or rejects a representation before its content arrives. Called for every request with content, resumable
    /// or not, before an upload is created.
    func accept(_ proposal: UploadProposal) -> Acceptance

    /// Whether `complete` can be called again for the same upload if the process ended, or the server stopped, during a
    /// call.
    ///
    /// If it is `false`, an upload whose completion was interrupted gets status 500. If it is `true`, the next request
    /// that completes the upload calls `complete` again.
    var isCompletionRepeatable: Bool { get }

    /// Names of the fields of the creating request that ``complete(_:)`` reads; the representation metadata by default.
    ///
    /// ``complete(_:)`` gets only these fields. An implementation replaces the default: add `Content-Type` if
    /// ``ReceivedUpload/formParts(limits:)`` is used. These fields, and those that the server needs (`Repr-Digest`,
    /// `Want-Repr-Digest`), are stored with an upload until it is complete or invalid. Fields with credentials, such as
    /// `Authorization` and `Cookie`, are never stored. A creation with more than 16,384 bytes to store is rejected with
    /// status 431.
    var storedFields: [String] { get }

    /// Returns what is stored of the fields that ``storedFields`` names, by default all of them unchanged. A handler
    /// that needs only a part of a value can return that part. ``complete(_:)`` gets the result.
    /// - Parameter fields: the fields of the request that ``storedFields`` names, without fields that contain
    ///   credentials, and without `Repr-Digest` and `Want-Repr-Digest`, which are always stored unchanged.
    func storedPart(of fields: Fields) -> Fields

    /// Whether the query of the URL is stored for ``complete(_:)``. `false` by default, because queries often have
    /// credentials. ``accept(_:)`` and ``respond(to:)`` always get the query.
    var shouldStoreQuery: Bool { get }

    /// Handles a complete and durable representation, and returns the final response. Called at most once for an
    /// upload, except with `isCompletionRepeatable`.
    ///
    /// `publish(_:)` of the upload stores the bytes as a file. Otherwise they are removed after this call, when the
    /// response is stored. The response is stored so that it can be sent again; therefore its content may have at most
    /// 1 MiB if it is a stream.
    /// - Parameter upload: the representation, which is valid only during this call.
    /// - Returns: the final response.
    /// - Throws: ``TargetUnavailable`` if the client should repeat the request later. After any other error the client
    ///   gets 500 as the final response. An error that is thrown after the server has canceled the task means that the
    ///   call was interrupted, see ``isCompletionRepeatable``.
    func complete(_ upload: ReceivedUpload) async throws -> Response

    /// Responds to a request without a representation: `GET`, `HEAD`, `DELETE` and other methods of the handler.
    ///
    /// If the status is 200 and the content is a published file (``Response/Content/file(_:)``), the server evaluates
    /// conditions and ranges, adds the validators, and sends 200, 206, 304, 412 or 416. If the method is safe and the
    /// fields have no `Cache-Control`, the server adds ``ServerConfiguration/cacheControl`` for files and `no-cache`
    /// for other responses, with `private` if the request requires credentials.
    func respond(to request: TargetRequest) async -> Response
}

extension TargetHandler {
    /// Returns `false`.
    public var isCompletionRepeatable: Bool { false }
    /// The fields of representation metadata (RFC 9110 section 8).
    public var storedFields: [String] {
        ["Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition"]
    }
    /// Returns `fields` unchanged.
    public func storedPart(of fields: Fields) -> Fields { fields }
    /// Returns `false`.
    public var shouldStoreQuery: Bool { false }
}

/// The error of a ``TargetHandler/complete(_:)`` that cannot process an upload now, for example because a database is busy.
///
/// The upload remains, with all its bytes. The client gets 503 (Service Unavailable) with `Retry-After` (RFC 9110
/// section 15.6.4 and section 10.2.3); when it repeats the completing request, `complete` is called again. If the
/// client does not know the URL of an upload resource, for example after a plain `POST`, the bytes are removed, and it
/// has to send them again.
///
/// This requires that ``TargetHandler/isCompletionRepeatable`` is `true`. Otherwise this is an error like any other.
public struct TargetUnavailable: Error, Sendable, Hashable, CustomStringConvertible {
    /// The cause, for the server's log. Clients do not get it.
    public var reason: String
    /// The time after which the client should repeat the request, at least one second.
    public var retryAfter: Duration

    /// Creates an error.
    public init(_ reason: String, retryAfter: Duration = .seconds(1)) {
        self.reason = reason
        self.retryAfter = retryAfter
    }

    /// The line in the server's log.
    public var description: String { "the target cannot process the upload now: \(reason)" }

    /// The value of `Retry-After`: complete seconds.
    var retryAfterField: String {
        let (seconds, fraction) = retryAfter.components
        return String(max(1, seconds + (fraction > 0 ? 1 : 0)))
    }
}

/// The error of a ``TargetHandler/complete(_:)`` whose effect is not known: the upload ends as if the process had ended
/// during the call.
package struct TargetInterrupted: Error, CustomStringConvertible {
    package let description: String

    package init(_ reason: String) { description = "the outcome of the call is unknown: \(reason)" }
}

/// A handler that awaits nothing, so that the server needs no task to call it.
protocol SynchronousHandler: TargetHandler {
    /// Whether ``completeSynchronously(_:)`` is called in place of ``TargetHandler/complete(_:)``.
    var isCompletedSynchronously: Bool { get }
    func completeSynchronously(_ upload: ReceivedUpload) throws -> Response
    func respond(to request: TargetRequest) -> Response
}

/// A resource below a handler's prefix.
public struct Target: Sendable, Hashable {
    /// The complete path of the URL, in canonical percent-encoding.
    public let path: String
    /// The decoded segments after the prefix of the handler.
    public let segments: [String]
    /// Whether the path ends with a slash or is the prefix itself, and so names a collection.
    public let isCollection: Bool
    /// The query of the URL as it was sent, without the question mark; `nil` if there is none.
    public let query: String?
    /// All decoded segments of the path, for authorization.
    let location: PathSegments
    /// Whether the path is not valid for files and uploads. Then ``path`` is as it was sent, and ``location`` is that of
    /// the handler.
    let isForwardedOnly: Bool

    /// The path and query, as they are stored with an upload.
    package var reference: String { path + (query.map { "?" + $0 } ?? "") }

    /// The decoded segments of the handler's prefix.
    var prefix: ArraySlice<String> { location.segments.dropLast(segments.count) }

    var withoutQuery: Target {
        Target(
            path: path, segments: segments, isCollection: isCollection, query: nil, location: location,
            isForwardedOnly: isForwardedOnly)
    }
}

/// The data about a representation that the server has before the content arrives.
public struct UploadProposal: Sendable {
    /// The resource.
    public let target: Target
    /// The method of the request.
    public let method: Method
    /// The principal that sent the request.
    public let principal: String
    /// The fields of the request.
    public let fields: Fields
    /// The length of the complete representation in bytes; `nil` if the request does not declare it.
    public let length: Int64?
    /// Whether an existing resource may be replaced; otherwise the representation must become a new resource.
    public let canReplace: Bool
}

/// The decision of a handler about a proposal.
public enum Acceptance: Sendable {
    /// Accept the representation.
    case accept
    /// Reject the representation with this final response. Nothing is created and no content is read.
    case refuse(Response)
}

/// A request without a representation.
public struct TargetRequest: Sendable {
    /// The resource.
    public let target: Target
    /// The method of the request.
    public let method: Method
    /// The principal that sent the request.
    public let principal: String
    /// The fields of the request.
    public let fields: Fields
    /// The text before the server's paths in URLs for the client, such as `https://files.example/inbox`. The server
    /// adds it to the paths in `Location` and `Content-Location`.
    public let base: PublicBase
    /// The web interface, if the request gets it instead of a listing.
    var page: PageRequest?
}

/// The part of a creation that is stored with its upload: the fields that its handler declares, and those that the
/// server needs when the representation is complete. Everything else is discarded after the request.
struct StoredCreation: Sendable {
    /// The maximum size of names, values and query that are stored with one upload, in bytes.
    static let maxSize = 16 << 10

    let fields: Fields
    let target: Target

    init(fields request: Fields, target: Target, route: HandlerRoute) {
        let handler = route.handler
        var stored = Fields()
        func add(_ names: some Sequence<String>) {
            for name in names where request.contains(name) && !stored.contains(name) {
                if ForwardingContext.credentialNames.contains(name.lowercased()) { continue }
                for value in request.values(name) { stored.append(name, value) }
            }
        }
        add(Self.declaredFields(of: request, by: route).lazy.filter { !Self.isDigestField($0) })
        stored = handler.storedPart(of: stored)
        add(RepresentationDigests.requestFields)
        fields = stored
        self.target = handler.shouldStoreQuery ? target : target.withoutQuery
    }

    /// The part of the stored fields that the handler gets, without the fields that only the server needs.
    static func declared(_ stored: Fields, by route: HandlerRoute) -> Fields {
        var declared = stored
        for name in RepresentationDigests.requestFields where stored.contains(name) {
            let names = declaredFields(of: stored, by: route)
            if !names.contains(where: name.equalsIgnoringASCIICase) { declared.remove(name) }
        }
        return declared
    }

    private static func declaredFields(of request: Fields, by route: HandlerRoute) -> [String] {
        route.streaming?.storedFields(of: request) ?? route.handler.storedFields
    }

    private static func isDigestField(_ name: String) -> Bool {
        RepresentationDigests.requestFields.contains(where: name.equalsIgnoringASCIICase)
    }

    /// The number of bytes that is compared with ``maxSize``.
    var size: Int {
        fields.reduce(target.query?.utf8.count ?? 0) { $0 + $1.name.utf8.count + $1.value.fieldByteCount }
    }
}

extension ProblemDetails {
    static let storedFieldsTooLarge = ProblemDetails(
        status: 431,
        detail: "The fields that describe the upload have more than \(StoredCreation.maxSize) bytes together. "
            + "Shorten the longest field, such as Content-Disposition.",
        code: "stored-fields-too-large", members: [("limit", .integer(Int64(StoredCreation.maxSize)))])
}

extension Response {
    /// Creates a response whose content is a value as JSON.
    /// - Parameters:
    ///   - value: the value.
    ///   - status: the status code.
    ///   - encoder: the encoder, for other settings than the default.
    /// - Throws: the error of the encoder, if the value cannot be expressed in JSON.
    public static func json(
        _ value: some Encodable, status: Status = .ok, using encoder: JSONEncoder = JSONEncoder()
    ) throws -> Response {
        Response(
            status: status, fields: ["Content-Type": "application/json"], content: Array(try encoder.encode(value)))
    }

    /// Creates a response whose content is a text in UTF-8.
    /// - Parameters:
    ///   - text: the content.
    ///   - status: the status code.
    public static func text(_ text: String, status: Status = .ok) -> Response {
        Response(
            status: status, fields: ["Content-Type": "text/plain; charset=utf-8"], content: Array(text.utf8))
    }
}
