import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport

/// Reads the content of a request and sends the responses, as a script requires. Only the thread of the connection uses
/// this object.
///
/// Reading and sending throw ``WireFailure`` when the connection has ended, or when nothing has happened for the timeout
/// of the input. A script need not catch these errors.
package final class Reply {
    private let input: PeerInput
    private let note: (_ content: ArraySlice<UInt8>, _ isComplete: Bool) -> Void
    private var content: ContentDecoder
    private let isToHead: Bool
    /// Whether bytes of a final response were sent.
    package private(set) var isAnswered = false
    /// Whether the connection is not used after the script.
    package private(set) var isOver = false
    /// Whether the content was read to its end.
    package private(set) var hasReadContent = false

    package init(
        to request: ReceivedRequest, on input: PeerInput, note: @escaping (ArraySlice<UInt8>, Bool) -> Void
    ) {
        self.input = input
        self.note = note
        isToHead = request.method == "HEAD"
        content = ContentDecoder(
            request.fields.contains("Transfer-Encoding")
                ? .chunked : .length(request.fields["Content-Length"].flatMap { Int64($0) } ?? 0))
        if content.isComplete { complete() }
    }

    private func complete() {
        hasReadContent = true
        note([], true)
    }

    // MARK: Content

    /// Reads the content to its end, or `maxCount` bytes of it.
    @discardableResult
    package func readContent(atMost maxCount: Int = .max) throws -> [UInt8] {
        var result: [UInt8] = []
        while result.count < maxCount, let part = try nextPart(atMost: maxCount - result.count) { result += part }
        return result
    }

    /// Reads the content to its end, or `maxCount` bytes of it, and discards it. This needs little memory.
    /// - Returns: The number of bytes.
    @discardableResult
    package func discardContent(atMost maxCount: Int = .max) throws -> Int {
        var count = 0
        while count < maxCount, let part = try nextPart(atMost: maxCount - count) { count += part.count }
        return count
    }

    /// The content that has arrived; waits for at least one byte.
    /// - Returns: `nil` at the end.
    package func nextPart(atMost maxCount: Int = .max) throws -> ArraySlice<UInt8>? {
        if hasReadContent { return nil }
        let part = try input.part(of: &content, atMost: maxCount)
        if let part { note(part, false) }
        if content.isComplete { complete() }
        return part
    }

    // MARK: Response

    /// Sends bytes unchanged, as a part of a final response.
    package func send(_ text: String) throws { try send(Array(text.utf8)) }

    package func send(_ bytes: [UInt8]) throws {
        isAnswered = true
        try transmit(bytes)
    }

    private func transmit(_ bytes: [UInt8]) throws {
        guard !isOver else { throw WireFailure.reset("by the peer") }
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    input.connection.rawValue, $0.baseAddress?.advanced(by: sent), bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
            } else if errno != EINTR {
                isOver = true
                throw errno == EAGAIN ? WireFailure.timedOut("sending") : WireFailure.reset("by the peer")
            }
        }
    }

    /// Sends an interim response.
    package func interim(_ status: Int, _ fields: Fields = [:]) throws {
        try transmit(Array((head(status, fields) + "\r\n").utf8))
    }

    /// Sends a final response with Content-Length; to HEAD without the content.
    package func respond(_ status: Int, _ fields: Fields = [:], _ body: String = "") throws {
        try respond(status, fields, Array(body.utf8))
    }

    package func respond(_ status: Int, _ fields: Fields = [:], _ body: [UInt8]) throws {
        let hasLength = status != 204 && status != 304 && !fields.contains("Content-Length")
        let length = hasLength ? "Content-Length: \(body.count)\r\n" : ""
        try send(Array((head(status, fields) + length + "\r\n").utf8) + (isToHead ? [] : body))
    }

    /// Sends the head of a final response; the script sends the content itself, framed as the fields specify.
    package func begin(_ status: Int, _ fields: Fields = [:]) throws {
        try send(head(status, fields) + "\r\n")
    }

    /// Sends a chunk of a chunked response; an empty chunk is the last one.
    package func send(chunk text: String) throws {
        try send(String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n")
    }

    private func head(_ status: Int, _ fields: Fields) -> String {
        fields.reduce(into: "HTTP/1.1 \(status) \(Status(rawValue: status).reasonPhrase)\r\n") { text, field in
            text += "\(field.name): \(field.value)\r\n"
        }
    }

    // MARK: Ending

    /// Resets the connection now (RST).
    package func reset() {
        LoopbackListener.reset(input.connection)
        isOver = true
    }

    /// Closes the connection after this request. If content is unread, the kernel resets the connection instead.
    package func close() {
        shutdown(input.connection.rawValue, Int32(SHUT_RDWR))
        isOver = true
    }

    /// Ends the output of this side (FIN); content can still be read.
    package func endOutput() {
        shutdown(input.connection.rawValue, Int32(SHUT_WR))
        isOver = true
    }

    /// Reads and sends nothing until the client closes the connection, for ten minutes at most.
    package func stall() {
        LoopbackListener.awaitEnd(of: input.connection, within: .seconds(600))
        isOver = true
    }

    /// Waits until the peer has closed its side.
    /// - Parameter discardingInput: whether input is read; otherwise it stays unread.
    /// - Returns: Whether it has.
    package func awaitClosing(within limit: Duration, discardingInput: Bool = false) -> Bool {
        let deadline = Deadline(in: limit)
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        while !deadline.isOver {
            // 0x2000 is POLLRDHUP, which Glibc does not export to Swift.
            var entry = pollfd(
                fd: input.connection.rawValue, events: discardingInput ? 0x2000 | Int16(POLLIN) : 0x2000, revents: 0)
            poll(&entry, 1, deadline.milliseconds)
            if entry.revents & (0x2000 | Int16(POLLHUP) | Int16(POLLERR)) != 0 { return true }
            if entry.revents & Int16(POLLIN) != 0, recv(input.connection.rawValue, &bytes, bytes.count, 0) == 0 {
                return true
            }
        }
        return false
    }

    /// Reads until the client closes the connection, so that a reset does not destroy the response.
    package func drain() {
        endOutput()
        input.drain()
        isOver = true
    }
}
