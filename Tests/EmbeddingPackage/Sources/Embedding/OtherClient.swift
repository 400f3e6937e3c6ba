import Glibc

/// An HTTP client that is independent of the server but runs in its process and on its thread.
enum OtherClient {
    /// A response that the server's receive filter would change or refuse.
    private static let response = Array(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;extension\r\nhello\r\n0\r\n\0\r\n\n\r".utf8)

    /// Receives a response as libcurl does, with poll(2) and recv(2).
    /// - Returns: the difference from the sent response; `nil` if the response arrived unchanged.
    static func exchange() -> String? {
        var sockets: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutablePointer(to: &sockets) { pointer in
            pointer.withMemoryRebound(to: Int32.self, capacity: 2) {
                socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, $0)
            }
        }
        guard result == 0 else { return "socketpair: errno \(errno)" }
        defer { close(sockets.0) }
        _ = response.withUnsafeBytes { send(sockets.1, $0.baseAddress, $0.count, 0) }
        close(sockets.1)
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 7)
        while true {
            var entry = pollfd(fd: sockets.0, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, 10_000) == 1 else { return "poll: errno \(errno)" }
            let count = recv(sockets.0, &buffer, buffer.count, 0)
            if count < 0 { return "recv: errno \(errno)" }
            // poll(2) reports the hang-up together with the end of the stream.
            if count == 0 {
                if entry.revents & Int16(POLLHUP) == 0 { return "poll did not report the hang-up" }
                break
            }
            received += buffer[..<count]
        }
        return received == response ? nil : "a client on this thread received \(received)"
    }
}
