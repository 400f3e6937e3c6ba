import ConformanceKit
import Glibc
import SystemCalls

/// The socket of a service manager: a datagram socket to which services send their state (sd_notify(3)).
final class ManagerSocket {
    private let descriptor: FileDescriptor
    /// The value for `NOTIFY_SOCKET`.
    let address: String
    /// The messages that have arrived, each as a dictionary of its assignments.
    private(set) var messages: [[String: String]] = []

    /// - Parameter address: a path, or an abstract name after `@`.
    init(_ address: String) throws {
        self.address = address
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        descriptor = FileDescriptor(owning: socket(AF_UNIX, type, 0))
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(address.utf8)
        if address.hasPrefix("@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: bytes) }
        let result = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor.rawValue, $0, socklen_t(2 + bytes.count))
            }
        }
        guard result == 0 else { throw Errno.current }
    }

    /// Waits for the next message that has this assignment; the messages before it are kept, too.
    @discardableResult
    func await(_ name: String, _ value: String? = nil, within limit: Duration = .seconds(30)) throws -> [String: String]
    {
        let deadline = Deadline(in: limit)
        while let message = receive(until: deadline) {
            messages.append(message)
            if let found = message[name], value == nil || found == value { return message }
        }
        throw WireFailure.timedOut("no message has \(name); the messages: \(messages)")
    }

    /// Reads the messages that have arrived, without waiting.
    func receiveAll() {
        while let message = receive(until: Deadline(in: .zero)) { messages.append(message) }
    }

    private func receive(until deadline: Deadline) -> [String: String]? {
        var entry = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
        while poll(&entry, 1, deadline.milliseconds) < 0 && errno == EINTR {}
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor.rawValue, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        guard count > 0 else { return nil }
        let lines = String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n")
        return Dictionary(
            lines.compactMap { line in
                line.firstIndex(of: "=").map { (String(line[..<$0]), String(line[line.index(after: $0)...])) }
            }, uniquingKeysWith: { $1 })
    }
}
