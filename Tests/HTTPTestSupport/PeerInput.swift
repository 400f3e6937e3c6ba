import ConformanceKit
import Glibc
import SystemCalls

/// The bytes that arrive on a connection. Only one thread at a time may use it.
///
/// Reading throws ``WireFailure`` when the connection has ended, or when nothing has happened for `timeout`.
package final class PeerInput {
    package let connection: FileDescriptor
    private let pause: Duration
    private var bytes: [UInt8] = []
    private var position = 0

    /// - Parameters:
    ///   - timeout: the time without activity after which reading and sending on this connection fail.
    ///   - pause: the time before each part is received.
    package init(_ connection: FileDescriptor, timeout: Duration = .seconds(30), pause: Duration = .zero) {
        self.connection = connection
        self.pause = pause
        set(timeout)
    }

    private func set(_ timeout: Duration) {
        let microseconds = timeout.nanoseconds / 1000
        var limit = timeval(tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(connection.rawValue, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// The bytes up to and including the next empty line. If the connection ends before that line, or if it does not
    /// follow within 1 MiB, returns the bytes that have arrived; `nil` if there are none.
    package func head() throws -> [UInt8]? {
        let end = Array("\r\n\r\n".utf8)
        var searched = position
        while true {
            if bytes.count - position >= end.count {
                let first = max(position, searched - 3)
                for start in first...(bytes.count - end.count)
                where bytes[start] == end[0] && bytes[start..<start + end.count].elementsEqual(end) {
                    return Array(next(start + end.count - position))
                }
            }
            searched = bytes.count
            let before = position
            guard bytes.count - position < 1 << 20, try fill() else {
                return position == bytes.count ? nil : Array(next(bytes.count - position))
            }
            searched -= before - position
        }
    }

    /// The next line without LF.
    /// - Throws: ``WireFailure/flood(_:)`` if it is longer than `maxCount`.
    package func line(atMost maxCount: Int = 1 << 20) throws -> ArraySlice<UInt8> {
        while true {
            if let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) {
                return next(end + 1 - position).dropLast()
            }
            guard bytes.count - position <= maxCount else { throw WireFailure.flood("a line without an end") }
            guard try fill() else { throw WireFailure.closed("receiving") }
        }
    }

    /// The bytes that have arrived, at least one and at most `maxCount`.
    package func part(atMost maxCount: Int) throws -> ArraySlice<UInt8> {
        if position == bytes.count, try !fill() { throw WireFailure.closed("receiving") }
        return next(min(maxCount, bytes.count - position))
    }

    /// The next part of the content that `decoder` decodes, at most `maxCount` bytes; `nil` at its end.
    package func part(of decoder: inout ContentDecoder, atMost maxCount: Int = .max) throws -> ArraySlice<UInt8>? {
        while !decoder.isComplete {
            if position == bytes.count, try !fill() { throw WireFailure.closed("receiving") }
            var remaining = bytes[position...]
            let part = try decoder.next(from: &remaining, atMost: Int64(maxCount))
            position = remaining.startIndex
            if !part.isEmpty { return part }
        }
        return nil
    }

    /// The number of bytes that have arrived and were not returned.
    package var count: Int { bytes.count - position }

    /// Discards everything that arrives until the connection ends, or nothing arrives for `timeout`.
    package func drain(timeout: Duration? = nil) {
        if let timeout { set(timeout) }
        repeat { position = bytes.count } while (try? fill()) == true
    }

    private func next(_ count: Int) -> ArraySlice<UInt8> {
        defer { position += count }
        return bytes[position..<position + count]
    }

    /// - Returns: whether bytes have arrived; false at the end.
    private func fill() throws -> Bool {
        if pause > .zero { SystemClock.pause(nanoseconds: pause.nanoseconds) }
        var result = 0
        let received = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
            repeat {
                result = recv(connection.rawValue, buffer.baseAddress, buffer.count, 0)
            } while result < 0
                && errno == EINTR
            count = max(result, 0)
        }
        let failure = errno
        guard result >= 0 else {
            throw failure == EAGAIN ? WireFailure.timedOut("receiving") : WireFailure.reset("by the peer")
        }
        if position == bytes.count {
            bytes = received
        } else {
            bytes = bytes[position...] + received
        }
        position = 0
        return result > 0
    }
}
