import ConformanceKit
import SystemCalls
import TestSupport
import Testing

extension ScriptedServer {
    /// An application behind a gateway. Its port is fixed, because a restart uses it again.
    /// - Parameter path: the path of a Unix socket to listen on instead.
    static func origin(unixPath path: String? = nil, _ script: @escaping Script) throws -> ScriptedServer {
        try ScriptedServer(
            on: path.map { .unix(path: $0) } ?? .tcp(host: "127.0.0.1", port: FixedPort.next()), script)
    }
}

extension Reply {
    /// Reads the remaining content and sends a response with a length.
    func respond(_ status: String = "200 OK", _ fields: [(String, String)] = [], _ content: String = "ok") throws {
        try discardContent()
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        try send("HTTP/1.1 \(status)\r\n\(lines)Content-Length: \(content.utf8.count)\r\n\r\n\(content)")
    }
}

/// Runs `body` with a server whose only route, `/app`, leads to an origin.
/// - Parameters:
///   - settings: further settings of the route, such as `timeout=1s`.
///   - options: further options of the server.
func withGateway(
    to origin: ScriptedServer, _ settings: String..., options: [String] = [], _ body: (ServerProcess) throws -> Void
) throws {
    let route = (["/app=\(origin.url)", "access=open"] + settings).joined(separator: ",")
    try withServer(options: ["--route", route] + options, body)
}

/// Events by which the script of an origin and a test wait for each other.
struct Signals: Sendable {
    private let counts = Monitor<[String: Int]>([:])

    func send(_ name: String) {
        counts.withLock { $0[name, default: 0] += 1 }
        counts.notifyAll()
    }

    /// Waits until the signal was sent this many times in total.
    func wait(for name: String, count: Int = 1, within limit: Duration = .seconds(30)) -> Bool {
        counts.wait(until: Deadline(in: limit).nanoseconds) { $0[name, default: 0] >= count ? () : nil } != nil
    }
}
