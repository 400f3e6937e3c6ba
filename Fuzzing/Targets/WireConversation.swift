import Foundation
import Glibc

/// One connection to a Unix socket: it sends bytes in pieces, ends its output, and receives all responses.
struct WireConversation {
    /// The byte that separates the pieces of an input.
    static let separator: UInt8 = 0xFF
    /// The maximum time in milliseconds until the server closes the connection of a client that has ended its output.
    private static let timeout: Int32 = 30_000

    let path: String

    /// Sends `input` and returns the answers.
    func exchange(_ input: some Collection<UInt8>) throws(Violation) -> [UInt8] {
        let descriptor = try connected()
        defer { close(descriptor) }
        for piece in input.split(separator: Self.separator) {
            guard send(Array(piece), on: descriptor) else { break }
            awaitReading(by: descriptor)
        }
        shutdown(descriptor, Int32(SHUT_WR))
        return try readAll(descriptor)
    }

    private func connected() throws(Violation) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw Violation("the server accepts no connection: errno \(errno)")
        }
        return descriptor
    }

    /// Sends bytes. Returns false if the server has closed the connection.
    private func send(_ bytes: [UInt8], on descriptor: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Waits for a short time until the server has read what was sent, so that the server usually receives the next
    /// piece separately. The checks do not depend on this.
    private func awaitReading(by descriptor: Int32) {
        for _ in 0..<200 {
            var waiting: Int32 = 0
            guard ioctl(descriptor, UInt(TIOCOUTQ), &waiting) == 0, waiting > 0 else { return }
            sched_yield()
        }
    }

    private func readAll(_ descriptor: Int32) throws(Violation) -> [UInt8] {
        var answers: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let result = poll(&entry, 1, Self.timeout)
            // The timer signal of libFuzzer interrupts system calls.
            if result < 0 && errno == EINTR { continue }
            guard result > 0 else {
                throw Violation("the connection does not end; so far: \(String(decoding: answers, as: UTF8.self))")
            }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return answers }
            answers += buffer[..<count]
            try require(answers.count <= 16 << 20, "more than 16 MiB of answers")
        }
    }
}
