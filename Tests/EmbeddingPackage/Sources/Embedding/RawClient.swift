import Glibc

/// Sends bytes on a connection of its own and reads until the server closes it.
enum RawClient {
    struct Answer {
        var text: String

        /// The status of the last final response.
        var lastStatus: Int? {
            text.split(separator: "HTTP/1.1 ").compactMap { Int($0.prefix(3)) }.last
        }
    }

    static func exchange(_ sent: String, path: String, sendsByteByByte: Bool) -> Answer {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { return Answer(text: "connect: errno \(errno)") }
        let bytes = Array(sent.utf8)
        for piece in sendsByteByByte ? bytes.map({ [$0] }) : [bytes] {
            guard piece.withUnsafeBytes({ send(descriptor, $0.baseAddress, $0.count, 0) }) == piece.count else { break }
            var unread: Int32 = 1
            for _ in 0..<200 where unread > 0 {
                guard ioctl(descriptor, UInt(TIOCOUTQ), &unread) == 0 else { break }
                sched_yield()
            }
        }
        shutdown(descriptor, Int32(SHUT_WR))
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count <= 0 { return Answer(text: String(decoding: text, as: UTF8.self)) }
            text += buffer[..<count]
        }
    }
}
