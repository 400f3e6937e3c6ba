import ConformanceKit
import FoundationEssentials
import SystemCalls
import TestSupport
import Testing

/// A CloudEvent as a receiver of events reads it.
struct ReceivedEvent: Decodable, Sendable, Hashable {
    struct Payload: Decodable, Sendable, Hashable {
        let upload: String
        let principal: String
        let method: String
        let target: String
        let length: Int64?
        let status: Int?
        let file: String?
        let reason: String?
        let fields: [String: String]
    }

    let specversion: String
    let id: String
    let source: String
    let type: String
    let subject: String
    let time: String
    let datacontenttype: String
    let data: Payload

    /// The type without the prefix that all types have.
    var kind: String { String(type.dropFirst("onward.upload.".count)) }
}

/// An endpoint for events. It verifies each request, and records the events that it has accepted.
final class EventEndpoint: Sendable {
    /// The response of the endpoint to an event.
    enum Answer: Sendable {
        /// A response; with a status of 2xx the event counts as accepted.
        case status(String, [(String, String)] = [])
        /// The endpoint sends these bytes, and then closes the connection.
        case bytes(String)
        /// No response until the server closes the connection.
        case silence
        /// The head of an accepting response, and content without an end.
        case endless
    }

    typealias Responder = @Sendable (ReceivedEvent) -> Answer

    private struct State {
        var attempts: [ReceivedEvent] = []
        var accepted: [ReceivedEvent] = []
        var firsts: [String: ReceivedEvent] = [:]
        var times: [String: [ContinuousClock.Instant]] = [:]
        var running = 0
        var maxRunning = 0
        var mistakes: [String] = []
        var secrets: [String]
        var responder: Responder
    }

    static let secrets = [1, 2].map { "whsec_" + Data(Payload.bytes(32, seed: $0)).base64EncodedString() }

    let origin: ScriptedServer
    private let directory: TemporaryDirectory
    private let state: Monitor<State>

    /// - Parameter secrets: the secrets that the server has; without any, requests must not be signed.
    init(
        secrets: [String] = [EventEndpoint.secrets[0]], unixPath: String? = nil,
        _ responder: @escaping Responder = { _ in .status("200 OK") }
    ) throws {
        let state = Monitor(State(secrets: secrets, responder: responder))
        self.state = state
        directory = try TemporaryDirectory()
        _ = try directory.file("secrets", Array(secrets.joined(separator: "\n").utf8))
        origin = try ScriptedServer.origin(unixPath: unixPath) { request, connection in
            state.withLock { state in
                state.running += 1
                state.maxRunning = max(state.maxRunning, state.running)
            }
            defer {
                state.withLock { $0.running -= 1 }
                state.notifyAll()
            }
            try Self.serve(request, connection, state)
        }
    }

    private static func serve(
        _ request: ReceivedRequest, _ connection: Reply, _ state: Monitor<State>
    ) throws {
        let content = try connection.readContent()
        guard let event = try? JSONDecoder().decode(ReceivedEvent.self, from: Data(content)) else {
            state.withLock { $0.mistakes.append("no CloudEvent: " + String(decoding: content, as: UTF8.self)) }
            return try connection.respond("400 No Event")
        }
        let responder = state.withLock { state in
            state.mistakes += mistakes(in: request, event, content, state.secrets)
            if let before = state.firsts.updateValue(event, forKey: event.id), before != event {
                state.mistakes.append("\(event) was \(before) before")
            }
            state.attempts.append(event)
            state.times[event.id, default: []].append(.now)
            return state.responder
        }
        state.notifyAll()
        switch responder(event) {
        case .status(let status, let fields):
            // Recorded before the response, so that a test which waits for the next request finds it.
            if status.hasPrefix("2") { state.withLock { $0.accepted.append(event) } }
            state.notifyAll()
            try connection.respond(status, fields)
        case .bytes(let text):
            try connection.send(text)
            connection.close()
        case .silence:
            _ = connection.awaitClosing(within: .seconds(60))
            connection.close()
        case .endless:
            state.withLock { $0.accepted.append(event) }
            state.notifyAll()
            try connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
            let part = [UInt8](repeating: 0x61, count: 64 << 10)
            while true { try connection.send(part) }
        }
    }

    /// Returns the violations of CloudEvents 1.0 and of Standard Webhooks in a request.
    private static func mistakes(
        in request: ReceivedRequest, _ event: ReceivedEvent, _ content: [UInt8], _ secrets: [String]
    ) -> [String] {
        let fields = request.fields
        let sent = fields["webhook-timestamp"] ?? ""
        let signed = Array("\(event.id).\(sent).".utf8) + content
        let expected = secrets.map { "v1," + signature(of: signed, $0) }.joined(separator: " ")
        let age = Int64(sent).map { SystemClock.realtimeSeconds() - $0 }
        let conditions: [(Bool, String)] = [
            (request.method == "POST" && request.path == "/events", "the request line"),
            (fields.values("Content-Type") == ["application/cloudevents+json; charset=utf-8"], "Content-Type"),
            (fields.values("webhook-id") == [event.id], "webhook-id"),
            (age.map { abs($0) <= 60 } ?? false, "webhook-timestamp"),
            ((fields["webhook-signature"] ?? "") == expected, "webhook-signature"),
            (!fields.contains("Transfer-Encoding"), "Transfer-Encoding"),
            (event.specversion == "1.0" && event.datacontenttype == "application/json", "attributes"),
            (event.type.hasPrefix("onward.upload."), "type"),
            (event.subject == event.data.upload, "subject"),
            ([event.id, event.data.upload].allSatisfy { $0.count == 32 && $0.allSatisfy(\.isHexDigit) }, "id"),
            (event.time.hasSuffix("Z") && event.time.count == 24, "time"),
        ]
        return conditions.filter { !$0.0 }.map {
            "\($0.1) of \(request.text)" + String(decoding: content, as: UTF8.self)
        }
    }

    /// HMAC-SHA256 in Base64 (RFC 2104), independently of the server.
    private static func signature(of bytes: [UInt8], _ secret: String) -> String {
        var key = Array(Data(base64Encoded: String(secret.dropFirst("whsec_".count))) ?? Data())
        key += [UInt8](repeating: 0, count: 64 - key.count)
        let inner = (key.map { $0 ^ 0x36 } + bytes).digest()
        return Data((key.map { $0 ^ 0x5C } + inner).digest()).base64EncodedString()
    }

    // MARK: Received events

    /// All events that arrived, in order, with repetitions.
    var attempts: [ReceivedEvent] { state.withLock { $0.attempts } }
    /// The events that the endpoint has accepted, in order, with repetitions.
    var accepted: [ReceivedEvent] { state.withLock { $0.accepted } }
    /// The maximum number of simultaneous requests since the last call.
    func takeMaxRunning() -> Int {
        state.withLock { state in
            defer { state.maxRunning = state.running }
            return state.maxRunning
        }
    }
    /// The times at which an event arrived.
    func times(of event: ReceivedEvent) -> [ContinuousClock.Instant] { state.withLock { $0.times[event.id] ?? [] } }
    var mistakes: [String] { state.withLock { $0.mistakes } }

    /// Responds to later requests in this way.
    func respond(_ responder: @escaping Responder) { state.withLock { $0.responder = responder } }

    /// Waits until `count` different events were accepted, and returns all accepted events.
    func awaitAccepted(
        _ count: Int, within limit: Duration = .seconds(30), sourceLocation: SourceLocation = #_sourceLocation
    ) -> [ReceivedEvent] {
        let found: Void? = state.wait(until: Deadline(in: limit).nanoseconds) { state in
            state.accepted.count >= count && Set(state.accepted.map(\.id)).count >= count ? () : nil
        }
        let accepted = accepted
        #expect(found != nil, "\(accepted.count) events of \(count)", sourceLocation: sourceLocation)
        return accepted
    }

    /// Waits until `count` requests have arrived.
    func awaitAttempts(
        _ count: Int, within limit: Duration = .seconds(30), sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found: Void? = state.wait(until: Deadline(in: limit).nanoseconds) { $0.attempts.count >= count ? () : nil }
        #expect(found != nil, "\(attempts.count) attempts of \(count)", sourceLocation: sourceLocation)
    }

    // MARK: The server

    /// The file with the secrets of the server.
    var secretsFile: String { directory.path + "/secrets" }

    /// Replaces the secrets in the file, and the expected signatures if the new secrets are valid.
    func write(secrets: [String], areValid: Bool = true) throws {
        _ = try directory.file("secrets", Array(secrets.joined(separator: "\n").utf8))
        if areValid { state.withLock { $0.secrets = secrets } }
    }

    /// The options of a server that sends its events to this endpoint.
    func options(_ settings: [String] = []) -> [String] {
        let url = origin.url + (origin.port == 0 ? ":" : "") + "/events"
        let isSigned = state.withLock { !$0.secrets.isEmpty }
        return ["--events", ([url] + settings).joined(separator: ",")]
            + (isSigned ? ["--events-secrets", secretsFile] : [])
    }

    /// Runs `body` with a server that sends its events to this endpoint, and verifies that all requests were correct.
    /// - Parameters:
    ///   - settings: the settings of `--events`, such as `timeout=1s`.
    ///   - options: further options of the server.
    func withServer(
        _ settings: String..., options: [String] = [], environment: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation, _ body: (ServerProcess) throws -> Void
    ) throws {
        try EndToEndTests.withServer(
            options: self.options(settings) + options, environment: environment, sourceLocation: sourceLocation, body)
        #expect(mistakes.isEmpty, "\(mistakes.prefix(3))", sourceLocation: sourceLocation)
        #expect(origin.malformed.isEmpty, "\(origin.malformed.prefix(3))", sourceLocation: sourceLocation)
    }
}

extension ServerProcess {
    /// Stores files of one byte without resumption, on one connection.
    func store(_ targets: some Sequence<String>) throws {
        let connection = try connect()
        for target in targets {
            let response = try connection.exchange(Request("PUT", target, [], .bytes([0x61])))
            guard response.status == 201 else { throw TestFailure("\(target): \(response)") }
        }
    }

    /// Runs `onward events`, which needs no object storage.
    func events(_ arguments: String...) throws -> OnwardRun {
        try OnwardRun(["events"] + arguments + storage.prefix(2))
    }
}

extension Sequence<ReceivedEvent> {
    /// The kinds of the events of the upload with a target, each event once, in the order of their first arrival.
    func kinds(of target: String) -> [String] {
        var seen: Set<String> = []
        return filter { $0.data.target == target && seen.insert($0.id).inserted }.map(\.kind)
    }

    /// The events that arrived more than once.
    var repeated: [ReceivedEvent] {
        var seen: Set<String> = []
        return filter { !seen.insert($0.id).inserted }
    }
}
