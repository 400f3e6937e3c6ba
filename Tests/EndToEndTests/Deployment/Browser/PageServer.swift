import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls

/// Serves pages on a port of its own, so that their origin is not that of the tested server, and receives the result
/// that a page posts.
final class PageServer {
    private let listener: LoopbackListener
    private let result: Monitor<[UInt8]?>

    var port: UInt16 { listener.port }

    /// - Parameter directories: the directories with the files. The first directory that has a file of the name is
    ///   used.
    init(_ directories: [String]) throws {
        let result = Monitor<[UInt8]?>(nil)
        self.result = result
        listener = try LoopbackListener("pages") { connection, _ in
            guard let (head, content) = Self.receive(from: connection) else { return }
            let words = head.split(separator: " ")
            guard words.count > 1 else { return }
            var answer = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8.map { $0 }
            let name = words[1].dropFirst().prefix { $0 != "?" }
            if words[0] == "POST" {
                result.withLock { $0 = content }
                result.notifyAll()
                answer = Array("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".utf8)
            } else if !name.contains("/"),
                let file = directories.lazy.compactMap({ FileManager.default.contents(atPath: $0 + "/" + name) }).first
            {
                let type = name.hasSuffix(".js") ? "text/javascript" : "text/html"
                let fields = "Content-Type: \(type)\r\nCache-Control: no-store\r\nConnection: close\r\n"
                answer = Array("HTTP/1.1 200 OK\r\n\(fields)Content-Length: \(file.count)\r\n\r\n".utf8) + file
            }
            var rest = answer[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    send(connection.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Waits for the result that a page posts.
    func awaitResult<Result: Decodable>(_ type: Result.Type, within limit: Duration) throws -> Result {
        guard let content = result.wait(until: Deadline(in: limit).nanoseconds, { $0 }) else {
            throw WireFailure.timedOut("the page posted no result")
        }
        return try JSONDecoder().decode(type, from: Data(content))
    }

    /// Reads one request: its head as text, and its content.
    private static func receive(from connection: FileDescriptor) -> (String, [UInt8])? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let text = String(decoding: bytes, as: UTF8.self)
            if let end = text.firstRange(of: "\r\n\r\n") {
                let head = String(text[..<end.lowerBound])
                let start = head.utf8.count + 4
                let length =
                    head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
                    .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) } ?? 0
                if bytes.count >= start + length { return (head, Array(bytes[start..<start + length])) }
            }
            let count = recv(connection.rawValue, &buffer, buffer.count, 0)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return nil }
            bytes += buffer[..<count]
        }
    }
}
