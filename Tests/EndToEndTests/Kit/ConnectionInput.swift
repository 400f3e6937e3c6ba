import ConformanceKit
import Glibc
import SystemCalls

/// Reads a connection line by line or a number of bytes at a time. Only one thread at a time may use it.
final class ConnectionInput {
    private let connection: FileDescriptor
    private var buffer = [UInt8](repeating: 0, count: 256 << 10)
    private var filled = 0..<0

    init(_ connection: FileDescriptor) {
        self.connection = connection
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(connection.rawValue, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// The next line without its ending.
    func line() throws -> String {
        var line: [UInt8] = []
        while true {
            if filled.isEmpty { try fill() }
            let byte = buffer[filled.lowerBound]
            filled = filled.dropFirst()
            if byte == 0x0A { return String(decoding: line.last == 0x0D ? line.dropLast() : line[...], as: UTF8.self) }
            line.append(byte)
        }
    }

    /// Passes the bytes that have arrived to `body`: at least one, and no more than `maxCount`.
    /// - Returns: The number of bytes.
    func readPart(_ maxCount: Int, _ body: (UnsafeRawBufferPointer) -> Void) throws -> Int {
        if filled.isEmpty { try fill() }
        let part = filled.prefix(maxCount)
        buffer.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[part])) }
        filled = filled.dropFirst(part.count)
        return part.count
    }

    /// Discards the bytes that have arrived; waits for at least one.
    func discard() throws {
        try fill()
        filled = 0..<0
    }

    private func fill() throws {
        while true {
            let count = recv(connection.rawValue, &buffer, buffer.count, 0)
            if count > 0 {
                filled = 0..<count
                return
            }
            if count == 0 { throw WireFailure.closed("receiving") }
            if errno == EAGAIN { throw WireFailure.timedOut("receiving") }
            if errno != EINTR { throw WireFailure.reset("by the peer") }
        }
    }
}
