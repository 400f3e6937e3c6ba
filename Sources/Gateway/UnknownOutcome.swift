import Foundation
import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer
import UploadStorage

/// A request with a complete upload that was sent to an application, and whose response is not known. The store retains it,
/// so that an operator can send it again.
package struct UnknownOutcome: Codable, Sendable {
    package struct Field: Codable, Sendable {
        package var name: String
        package var value: String
    }

    /// The idempotency key of the upload, which the application gets in `Onward-Upload`.
    package var upload: String
    /// The path of the route.
    package var route: String
    /// The application, in the notation of ``Origin/init(parsing:)``.
    package var origin: String
    package var method: String
    package var target: String
    /// The fields of the request, without credentials.
    package var fields: [Field]
    package var principal: String
    /// The length of the content in bytes.
    package var length: Int64
    /// The time at which the outcome became unknown, in seconds since 1970.
    package var time: Int64
    /// The directory ``Route/handoverDirectory`` of the route.
    var handoverDirectory: String?

    init(_ record: UploadRecord, _ route: Route) {
        upload = record.id.fingerprint
        self.route = route.path
        origin = route.origin.description
        method = record.upload.method.rawValue
        target = record.upload.target
        fields = record.upload.fields.map { Field(name: $0.name, value: $0.value) }
        principal = record.upload.principal
        length = record.length ?? record.offset
        time = SystemClock.realtimeSeconds()
        handoverDirectory = route.handoverDirectory
    }

    package init(json: [UInt8]) throws { self = try JSONDecoder().decode(Self.self, from: Data(json)) }

    /// The final response to the client.
    package static let response = Response(
        ProblemDetails(
            status: .badGateway,
            detail:
                "The application may have processed the upload, but its response is not known. Find out whether the "
                + "application has the upload before you send it again.",
            code: "origin-outcome-unknown"))
}

extension StoreConfiguration {
    /// Sets what happens to an upload of these routes, except those with ``Route/isRepeatable``, if its request was
    /// sent to the application and no complete response was received. The client then gets 502 with the code
    /// `origin-outcome-unknown`, and the store retains the bytes. Also makes the store verify each
    /// ``Route/handoverDirectory`` when it is opened.
    /// - Parameter ownPrefix: `ServerConfiguration.ownPrefix`.
    public mutating func retainUnknownOutcomes(of routes: [Route], ownPrefix: String = "") {
        let routes = routes.sorted { $0.segments.count > $1.segments.count }
        let own = OwnPaths(ownPrefix)
        handoverDirectories = routes.compactMap(\.handoverDirectory)
        interruption = { record in
            let path = record.upload.target.prefix { $0 != "?" }
            guard let segments = try? PathSegments(decoding: String(path)).segments, !own.contains(segments),
                let route = routes.first(where: { segments.starts(with: $0.segments) }),
                let description = try? JSONEncoder().encode(UnknownOutcome(record, route))
            else { return nil }
            return Interruption(response: UnknownOutcome.response, description: Array(description))
        }
    }
}

extension UnknownOutcome {
    /// Sends the request to the application again, with the principal and without other credentials.
    /// - Parameters:
    ///   - request: the request with this description.
    ///   - requests: the retained requests that contain `request`.
    ///   - caFile: see ``Origin/caFile``.
    ///   - timeout: the maximum time in which no byte moves between this program and the application.
    /// - Returns: the response, and a sentence that describes the outcome. The response is `nil` if the application did not
    ///   respond, or responded with 503. It has no content if the application sent more than 1 MiB.
    /// - Throws: an error if the content cannot be read or the description is not valid.
    package func send(
        _ request: RetainedRequest, of requests: any RetainedRequests, caFile: String?, timeout: Duration
    ) throws -> (response: Response?, summary: String) {
        var origin = try Origin(parsing: origin)
        origin.caFile = caFile
        let client = OriginClient(origin, timeout: timeout)
        let stored = Fields(fields.map { ($0.name, $0.value) })
        var outgoing = ForwardedMessage.requestFields(stored, isUpload: true)
        if principal != Identity.anonymous.principal { outgoing.append("Onward-Principal", principal) }
        // The server has compared the content with these digests.
        if let digest = DigestField(fieldLines: stored.values("Repr-Digest"))?.serialized {
            outgoing.append("Onward-Digest", digest)
        }
        outgoing.append("Onward-Upload", upload)
        let size = request.length
        let file = try handoverDirectory.map { try requests.share(upload, in: $0) }
        if let file { outgoing.appendFile(file, length: size) }
        let hasContent = size > 0 && file == nil
        let sent = OriginRequest(
            method: Method(rawValue: method), target: target, fields: outgoing,
            content: hasContent ? .range(from: 0, count: size) : .empty,
            source: hasContent ? RetainedContent(content: request.content, length: size) : nil, isRepeatable: false,
            isNewConnectionNeeded: true)
        let delivered = OriginDelivery(client, sent).run(isCanceled: { false })
        let isMoved = file?.remove() == false
        guard let outcome = delivered?.considering(isMoved: isMoved) else { return (nil, "") }
        switch outcome {
        case .responded(let response, _): return (response, outcome.summary)
        case .responseTooLarge(let status): return (Response(status: status), outcome.summary)
        case .unavailable, .unknown: return (nil, outcome.summary)
        }
    }
}

/// The content of a retained request.
private struct RetainedContent: UploadSource {
    let content: any PublishedContent
    let length: Int64?

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        do { return try content.read(into: buffer, at: offset) } catch { throw .system(error) }
    }

    func acknowledged(upTo offset: Int64) {}
}
