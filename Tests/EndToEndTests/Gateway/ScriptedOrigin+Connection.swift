import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport

extension ScriptedOrigin {
    /// A connection, for the script of one request. Only the thread of the connection uses it. Reading and sending throw
    /// ``WireFailure`` when the connection has ended; a script need not catch these errors.
    final class Connection {
        private enum Framing {
            /// The number of remaining bytes.
            case sized(Int64)
            /// The number of remaining bytes of the chunk; `nil` before its size was read.
            case chunked(Int64?)
        }

        private let descriptor: FileDescriptor
        private let input: Input
        private let note: ([UInt8], Bool) -> Void
        private var framing: Framing
        /// Whether the content was read to its end.
        private(set) var hasReadContent = false
        /// Whether the connection is not used after the script.
        private(set) var isOver = false

        init(
            _ descriptor: FileDescriptor, _ input: Input, _ request: Request, note: @escaping ([UInt8], Bool) -> Void
        ) {
            self.descriptor = descriptor
            self.input = input
            self.note = note
            framing =
                request.fields.contains("Transfer-Encoding")
                ? .chunked(nil) : .sized(request.fields["Content-Length"].flatMap { Int64($0) } ?? 0)
            if case .sized(0) = framing { complete() }
        }

        private func complete() {
            hasReadContent = true
            note([], true)
        }

        /// Reads the content to its end, or `maxCount` bytes of it.
        /// - Returns: the bytes.
        @discardableResult
        func readContent(atMost maxCount: Int = .max) throws -> [UInt8] {
            var result: [UInt8] = []
            while result.count < maxCount, let part = try nextPart(atMost: maxCount - result.count) { result += part }
            return result
        }

        /// Reads the content to its end, or `maxCount` bytes of it, and discards it. This needs little memory.
        /// - Returns: the number of bytes.
        @discardableResult
        func discardContent(atMost maxCount: Int = .max) throws -> Int {
            var count = 0
            while count < maxCount, let part = try nextPart(atMost: maxCount - count) { count += part.count }
            return count
        }

        /// The content that has arrived; waits for at least one byte.
        /// - Returns: `nil` at the end.
        func nextPart(atMost maxCount: Int = .max) throws -> [UInt8]? {
            if hasReadContent { return nil }
            switch framing {
            case .sized(let left):
                let part = try input.part(Int(clamping: min(left, Int64(maxCount))))
                framing = .sized(left - Int64(part.count))
                note(part, false)
                if left == part.count { complete() }
                return part
            case .chunked(nil):
                let line = try input.line()
                guard let size = Int64(line, radix: 16), size >= 0, !line.hasPrefix("+") else {
                    throw WireFailure.malformed("the size of a chunk: \(line)")
                }
                if size == 0 {
                    while try !input.line().isEmpty {}
                    complete()
                    return nil
                }
                framing = .chunked(size)
                return try nextPart(atMost: maxCount)
            case .chunked(let left?):
                let part = try input.part(Int(clamping: min(left, Int64(maxCount))))
                if left == part.count {
                    guard try input.line().isEmpty else { throw WireFailure.malformed("no line end after a chunk") }
                    framing = .chunked(nil)
                } else {
                    framing = .chunked(left - Int64(part.count))
                }
                note(part, false)
                return part
            }
        }

        func send(_ text: String) throws { try send(Array(text.utf8)) }

        func send(_ bytes: [UInt8]) throws {
            var sent = 0
            while sent < bytes.count {
                let count = bytes[sent...].withUnsafeBytes {
                    Glibc.send(descriptor.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if count > 0 { sent += count } else if errno != EINTR { throw WireFailure.reset("by the gateway") }
            }
        }

        /// Reads the remaining content and sends a response with a length.
        func respond(_ status: String = "200 OK", _ fields: [(String, String)] = [], _ content: String = "ok") throws {
            try discardContent()
            let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
            try send("HTTP/1.1 \(status)\r\n\(lines)Content-Length: \(content.utf8.count)\r\n\r\n\(content)")
        }

        /// Ends the output of this side in order (FIN).
        func endOutput() {
            isOver = true
            shutdown(descriptor.rawValue, Int32(SHUT_WR))
        }

        /// Ends the connection in order, in both directions.
        func close() {
            isOver = true
            shutdown(descriptor.rawValue, Int32(SHUT_RDWR))
        }

        /// Resets the connection (RST).
        func reset() {
            isOver = true
            LoopbackListener.reset(descriptor)
        }

        /// Waits until the gateway has closed its side.
        /// - Parameter discardingInput: whether input is read; otherwise it stays unread.
        /// - Returns: whether it has.
        func awaitClosing(within limit: Duration, discardingInput: Bool = false) -> Bool {
            let deadline = Deadline(in: limit)
            var bytes = [UInt8](repeating: 0, count: 64 << 10)
            while !deadline.isOver {
                // 0x2000 is POLLRDHUP, which Glibc does not export to Swift.
                var entry = pollfd(
                    fd: descriptor.rawValue, events: discardingInput ? 0x2000 | Int16(POLLIN) : 0x2000, revents: 0)
                poll(&entry, 1, deadline.milliseconds)
                if entry.revents & (0x2000 | Int16(POLLHUP) | Int16(POLLERR)) != 0 { return true }
                if entry.revents & Int16(POLLIN) != 0, recv(descriptor.rawValue, &bytes, bytes.count, 0) == 0 {
                    return true
                }
            }
            return false
        }
    }

    /// The bytes of a connection.
    final class Input {
        let descriptor: FileDescriptor
        private(set) var buffer: [UInt8] = []

        init(_ descriptor: FileDescriptor) {
            self.descriptor = descriptor
            var limit = timeval(tv_sec: 60, tv_usec: 0)
            for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
                setsockopt(descriptor.rawValue, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
            }
        }

        /// Everything up to the next empty line; `nil` if the connection ended before the first byte. What has arrived
        /// before another end, or without an end, is returned as it is.
        func head() throws -> [UInt8]? {
            let end = Array("\r\n\r\n".utf8)
            var searched = 0
            while true {
                if buffer.count >= end.count {
                    for start in max(0, searched - 3)...(buffer.count - end.count)
                    where buffer[start..<(start + end.count)].elementsEqual(end) {
                        return next(start + end.count)
                    }
                }
                searched = buffer.count
                guard searched < 1 << 20, try fill() else { return buffer.isEmpty ? nil : next(buffer.count) }
            }
        }

        /// The next line without CRLF.
        func line() throws -> String {
            var start = 0
            while true {
                if let end = buffer[start...].firstIndex(of: 0x0A) {
                    let line = next(end + 1).dropLast()
                    guard line.last == 0x0D else { throw WireFailure.malformed("a line of chunks without CR") }
                    return String(decoding: line.dropLast(), as: UTF8.self)
                }
                start = buffer.count
                guard try fill() else { throw WireFailure.closed("reading chunks") }
            }
        }

        /// The bytes that have arrived, at least one and at most `maxCount`.
        func part(_ maxCount: Int) throws -> [UInt8] {
            if buffer.isEmpty, try !fill() { throw WireFailure.closed("reading content") }
            return next(min(maxCount, buffer.count))
        }

        private func next(_ count: Int) -> [UInt8] {
            if count == buffer.count {
                defer { buffer = [] }
                return buffer
            }
            defer { buffer.removeFirst(count) }
            return Array(buffer[..<count])
        }

        /// - Returns: whether bytes have arrived; false at the end.
        private func fill() throws -> Bool {
            var bytes = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                let count = recv(descriptor.rawValue, &bytes, bytes.count, 0)
                if count > 0 {
                    buffer.append(contentsOf: bytes[..<count])
                    return true
                }
                if count == 0 { return false }
                if errno == EAGAIN { throw WireFailure.timedOut("receiving") }
                if errno != EINTR { throw WireFailure.reset("by the gateway") }
            }
        }
    }
}
