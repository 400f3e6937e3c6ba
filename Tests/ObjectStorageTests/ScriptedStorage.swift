import Glibc
import SystemCalls
import TestSupport

@testable import ObjectStorage

/// A server that reacts to each request as a test decides, even against the rules of HTTP.
final class ScriptedStorage: Sendable {
    struct Request: Sendable {
        var method: String
        var target: String
        /// By their names in lower case.
        var fields: [String: String]
        var content: [UInt8]
    }

    /// What is sent, and what then happens to the connection.
    enum Reaction: Sendable {
        case keep(String)
        case end(String)
        case reset(String)
        /// Nothing more is sent until the client closes the connection.
        case stall(String)
        /// One byte is sent every 20 milliseconds until the client closes the connection.
        case trickle(String)
    }

    private struct State {
        var requests: [Request] = []
        var connections = 0
    }

    private let listener: LoopbackListener
    private let state: Monitor<State>

    /// - Parameters:
    ///   - pause: the time in nanoseconds before each part of a request is received.
    ///   - react: receives the number of the request, from 1.
    init(pause: Int64 = 0, _ react: @escaping @Sendable (Int, Request) -> Reaction) throws {
        let state = Monitor(State())
        self.state = state
        listener = try LoopbackListener("scripted-storage") { connection, _ in
            state.withLock { $0.connections += 1 }
            var input: [UInt8] = []
            while let request = Self.read(connection, pause, &input) {
                let number = state.withLock { state in
                    state.requests.append(request)
                    return state.requests.count
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
    var requests: [Request] { state.withLock { $0.requests } }
    var connections: Int { state.withLock { $0.connections } }

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

    private static func read(_ connection: FileDescriptor, _ pause: Int64, _ input: inout [UInt8]) -> Request? {
        let end = Array("\r\n\r\n".utf8)
        func receive() -> Bool {
            if pause > 0 { SystemClock.pause(nanoseconds: pause) }
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            let count = recv(connection.rawValue, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            input += buffer[..<count]
            return true
        }
        var headEnd: Int?
        while headEnd == nil {
            headEnd = input.indices.first { input[$0...].starts(with: end) }
            if headEnd == nil, !receive() { return nil }
        }
        guard let headEnd else { return nil }
        let lines = String(decoding: input[..<headEnd], as: UTF8.self).split(separator: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            fields[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        let total = headEnd + end.count + (fields["content-length"].flatMap { Int($0) } ?? 0)
        while input.count < total { if !receive() { return nil } }
        defer { input.removeFirst(total) }
        return Request(
            method: words[0], target: words[1], fields: fields, content: Array(input[(headEnd + end.count)..<total]))
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
