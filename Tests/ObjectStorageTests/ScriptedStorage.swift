import Glibc
import HTTPTestSupport
import SystemCalls
import TestSupport

@testable import ObjectStorage

/// A server that reacts to each request as a test decides, even against the rules of HTTP.
final class ScriptedStorage: Sendable {
    /// The bytes that the server sends, and what happens to the connection after that.
    enum Reaction: Sendable {
        case keep(String)
        case end(String)
        case reset(String)
        /// Nothing more is sent until the client closes the connection.
        case stall(String)
        /// One byte is sent every 20 milliseconds until the client closes the connection.
        case trickle(String)
    }

    private let listener: LoopbackListener
    private let received: Monitor<[ReceivedRequest]>

    /// - Parameters:
    ///   - pause: the time before each part of a request is received.
    ///   - react: receives the number of the request, from 1.
    init(pause: Duration = .zero, _ react: @escaping @Sendable (Int, ReceivedRequest) -> Reaction) throws {
        let received = Monitor<[ReceivedRequest]>([])
        self.received = received
        listener = try LoopbackListener("scripted-storage") { connection, number in
            let input = PeerInput(connection, timeout: .seconds(600), pause: pause)
            while let request = try? Self.read(input, number) {
                let number = received.withLock { requests in
                    requests.append(request)
                    return requests.count
                }
                guard Self.perform(react(number, request), on: connection) else { return }
            }
        }
    }

    /// - Parameter reactions: one for each request; the last one is repeated.
    convenience init(_ reactions: [Reaction]) throws {
        try self.init { number, _ in reactions[min(number, reactions.count) - 1] }
    }

    var port: UInt16 { listener.port }
    var requests: [ReceivedRequest] { received.withLock { $0 } }
    var connections: Int { listener.connections }

    /// A client of this server, whose pauses are recorded and take no time.
    func client(
        pauses: Monitor<[Int64]> = Monitor([]), environment: [String: String] = [:],
        clock: @escaping @Sendable () -> Int64 = SystemClock.realtimeSeconds,
        limits change: (inout S3Client.Limits) -> Void = { _ in }
    ) throws -> S3Client {
        var limits = S3Client.Limits()
        change(&limits)
        let keys = ["AWS_ACCESS_KEY_ID": "ACCESSKEY", "AWS_SECRET_ACCESS_KEY": "SECRETKEY"]
        return S3Client(
            try ObjectStorageURI(parsing: "s3://bucket/p?endpoint=http://127.0.0.1:\(port)"),
            ObjectCredentials(environment: environment.isEmpty ? keys : environment), limits: limits, clock: clock,
            pause: { time in pauses.withLock { $0.append(time) } })
    }

    /// A response with a status, fields and content.
    static func response(_ status: String, _ fields: [String] = [], _ content: String = "") -> String {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(content.utf8.count)"] + fields
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + content
    }

    static func error(_ status: String, _ code: String, fields: [String] = [], _ elements: String = "") -> String {
        response(status, fields, "<?xml version=\"1.0\"?><Error><Code>\(code)</Code>\(elements)</Error>")
    }

    private static func read(_ input: PeerInput, _ number: Int) throws -> ReceivedRequest? {
        guard let head = try input.head(), var request = ReceivedRequest(head, connection: number) else { return nil }
        var content: [UInt8] = []
        let reply = Reply(to: request, on: input) { part, _ in content += part }
        try reply.discardContent()
        request.note(content[...], isComplete: true, keeping: .max)
        return request
    }

    /// - Returns: whether the connection is kept.
    private static func perform(_ reaction: Reaction, on connection: FileDescriptor) -> Bool {
        switch reaction {
        case .keep(let text): return send(text, connection)
        case .end(let text):
            // The client receives the end together with the text.
            _ = send(text, connection, Int32(MSG_MORE))
            shutdown(connection.rawValue, Int32(SHUT_WR))
        case .reset(let text):
            _ = send(text, connection)
            // The client reads what was sent before the connection is reset.
            _ = pollUntil(within: .seconds(10)) { unsentBytes(connection) == 0 ? true : nil }
            LoopbackListener.reset(connection)
        case .stall(let text):
            _ = send(text, connection)
            LoopbackListener.awaitEnd(of: connection, within: .seconds(60))
        case .trickle(let text):
            while send(text, connection) { SystemClock.pause(nanoseconds: 20_000_000) }
        }
        return false
    }

    private static func send(_ text: String, _ connection: FileDescriptor, _ flags: Int32 = 0) -> Bool {
        let bytes = Array(text.utf8)
        return Glibc.send(connection.rawValue, bytes, bytes.count, Int32(MSG_NOSIGNAL) | flags) == bytes.count
    }

    private static func unsentBytes(_ connection: FileDescriptor) -> Int32 {
        var count: Int32 = 0
        // 0x5411 is SIOCOUTQ (tcp(7)).
        return ioctl(connection.rawValue, 0x5411, &count) == 0 ? count : 0
    }
}
