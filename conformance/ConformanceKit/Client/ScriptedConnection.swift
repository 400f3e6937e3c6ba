import HTTPSemantics
import SystemCalls

/// The server's side of a connection: it reads requests and sends any bytes, valid or invalid. One thread uses it.
final class ScriptedConnection {
    let number: Int
    private let shared: ScenarioState
    private var socket: ConnectedSocket?
    private var input: [UInt8] = []
    private var position = 0

    init(_ socket: ConnectedSocket, number: Int, shared: ScenarioState) {
        self.socket = socket
        self.number = number
        self.shared = shared
        shared.note("the client connected", on: number)
    }

    // MARK: - Receiving

    /// Returns the next head; `nil` if the client has closed the connection between requests.
    func readHead() throws(WireFailure) -> RequestHead? {
        while true {
            if let end = ParsedHead.end(of: input, from: position) {
                let bytes = input[position..<end]
                position = end
                return try RequestHead(received: bytes)
            }
            guard input.count - position < RawConnection.Bounds.head else { throw .malformed("a head without an end") }
            let isBetweenRequests = position == input.count
            do throws(WireFailure) { try receive() } catch {
                if isBetweenRequests { return nil }
                throw error
            }
        }
    }

    /// Reads content piece by piece, without its transfer coding, and passes each piece to `passOn`.
    /// - Parameter maximum: the maximum number of bytes to read; `nil` for all.
    /// - Returns: whether the content was read to its end.
    func readContent(
        _ framing: MessageFraming, atMost maximum: Int64?, _ passOn: (ArraySlice<UInt8>) throws(WireFailure) -> Void
    ) throws(WireFailure) -> Bool {
        let maximum = maximum ?? .max
        var decoder = ContentDecoder(framing, accepting: [.extensions, .lineFeeds])
        while !decoder.isComplete {
            if decoder.isWithinData, decoder.count >= maximum { return false }
            if position == input.count { try receive() }
            var remaining = input[position...]
            let piece = try decoder.next(from: &remaining, atMost: maximum - decoder.count)
            position = remaining.startIndex
            if !piece.isEmpty { try passOn(piece) }
        }
        return true
    }

    /// Describes the bytes that follow the content of a request, unless another request begins with them; `nil` if
    /// there are no such bytes.
    ///
    /// Bytes that were sent after the content have usually arrived together with it, so the wait for them is short.
    func surplus() -> String? {
        if position == input.count { try? receive(within: Deadline(in: .milliseconds(20)), evenIfOver: true) }
        // Empty lines before a request are ignored (RFC 9112 section 2.2).
        let remaining = input[position...].drop { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
        guard !remaining.isEmpty else { return nil }
        let beginsRequest = Self.methods.contains { method in
            let start = Array("\(method) ".utf8)
            return remaining.starts(with: start) || start.starts(with: remaining)
        }
        return beginsRequest ? nil : "\(input.count - position) more bytes than the content has"
    }

    private static let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

    /// Discards incoming bytes until the client has ended the connection or `limit` has passed.
    /// - Returns: the number of discarded bytes.
    func discard(for limit: Duration) -> Int64 {
        let deadline = Deadline(in: limit)
        var count = Int64(input.count - position)
        position = input.count
        while !deadline.isOver {
            // The socket may contain bytes even if the scenario is over.
            do throws(WireFailure) { try receive(within: deadline, evenIfOver: true) } catch { break }
            count += Int64(input.count - position)
            position = input.count
        }
        return count
    }

    /// - Parameter evenIfOver: whether to receive bytes although the scenario is over.
    private func receive(within limit: Deadline? = nil, evenIfOver: Bool = false) throws(WireFailure) {
        if position > 1 << 18 {
            input.removeFirst(position)
            position = 0
        }
        let known = input.count
        while let socket, evenIfOver || !shared.isOver, limit?.isOver != true {
            var ending: Errno?
            input.append(
                contentsOf: [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                    do throws(Errno) {
                        let slice = Deadline(in: .milliseconds(50)).nanoseconds
                        count = try socket.receive(into: UnsafeMutableRawBufferPointer(buffer), until: slice)
                    } catch {
                        ending = error
                    }
                })
            if ending == .timedOut { continue }
            if input.count > known { return shared.received(input[known...], on: number) }
            shared.note(
                ending.map { "the client reset the connection: \($0)" }
                    ?? "the client closed its side of the connection", on: number)
            throw .closed("receiving")
        }
        throw .closed("receiving")
    }

    // MARK: - Sending

    /// Sends bytes until the client accepts no more.
    /// - Returns: whether all bytes were sent.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool { send(bytes[...]) }

    @discardableResult
    func send(_ bytes: ArraySlice<UInt8>) -> Bool {
        var sent = bytes.startIndex
        defer { shared.sent(bytes[..<sent], on: number) }
        while sent < bytes.endIndex, let socket, !shared.isOver {
            do throws(Errno) {
                let end = min(bytes.endIndex, sent + (64 << 10))
                sent += try socket.send(bytes[sent..<end], until: Deadline(in: .milliseconds(50)).nanoseconds)
            } catch {
                if error != .timedOut { return false }
            }
        }
        return sent == bytes.endIndex
    }

    /// Ends the output of the connection.
    func endOutput() { socket?.endOutput() }

    func reset() {
        shared.note("the harness resets the connection", on: number)
        socket?.resetOnClose()
        socket = nil
    }

    func close() {
        if socket != nil { shared.note("the harness closes the connection", on: number) }
        socket = nil
    }
}
