import HTTPSemantics
import SystemCalls

/// The server's side of a connection: it reads requests and sends any bytes, valid or invalid. One thread uses it.
final class ScriptedConnection {
    /// The reason why no more requests can be read.
    enum Failure: Error {
        /// The client ended the connection, or the scenario is over.
        case ended
        case malformed(String)
    }

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
    func readHead() throws(Failure) -> RequestHead? {
        while true {
            if let end = ParsedHead.end(of: input, from: position) {
                let bytes = input[position..<end]
                position = end
                return try Self.parse(bytes)
            }
            guard input.count - position < RawConnection.Bounds.head else { throw .malformed("a head without an end") }
            let isBetweenRequests = position == input.count
            do throws(Failure) { try receive() } catch {
                if isBetweenRequests { return nil }
                throw error
            }
        }
    }

    private static func parse(_ bytes: ArraySlice<UInt8>) throws(Failure) -> RequestHead {
        let lines = bytes.split(separator: UInt8(ascii: "\n")).map {
            $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0
        }
        let words = String(decoding: lines.first ?? [], as: UTF8.self)
            .split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 3, let version = ProtocolVersion(parsing: words[2]) else {
            throw .malformed("an invalid request line: '\(words.joined(separator: " ").prefix(80))'")
        }
        var fields = Fields()
        for line in lines.dropFirst() where !line.isEmpty {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
                throw .malformed("a field line without a colon: '\(String(decoding: line.prefix(60), as: UTF8.self))'")
            }
            guard line.startIndex < colon, line[..<colon].allSatisfy(isTokenCharacter) else {
                throw .malformed(
                    "an invalid field name: '\(String(decoding: line[..<colon].prefix(60), as: UTF8.self))'")
            }
            let value = String(decoding: line[(colon + 1)...], as: UTF8.self)
            fields.append(
                String(decoding: line[..<colon], as: UTF8.self),
                String(value.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed()))
        }
        return RequestHead(method: Method(rawValue: words[0]), target: words[1], version: version, fields: fields)
    }

    /// Returns whether a byte is allowed in a token (RFC 9110 section 5.6.2).
    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// Reads content piece by piece, without its transfer coding, and passes each piece to `receive`.
    /// - Parameter maximum: the maximum number of bytes to read; `nil` for all.
    /// - Returns: whether the content was read to its end.
    func readContent(
        _ framing: MessageFraming, atMost maximum: Int64?, _ receive: (ArraySlice<UInt8>) throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        var budget = maximum ?? .max
        switch framing {
        case .none: return true
        case .length(let length): return try readPieces(length, &budget, receive)
        case .chunked:
            while true {
                let line = try readLine()
                guard let size = Int64(line.prefix { $0 != ";" }, radix: 16), size >= 0 else {
                    throw .malformed("an invalid chunk size: '\(line.prefix(40))'")
                }
                if size == 0 { break }
                guard try readPieces(size, &budget, receive) else { return false }
                guard try readLine().isEmpty else { throw .malformed("no CRLF after the data of a chunk") }
            }
            while try !readLine().isEmpty {}
            return true
        }
    }

    private func readPieces(
        _ count: Int64, _ budget: inout Int64, _ passOn: (ArraySlice<UInt8>) throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        var remaining = count
        while remaining > 0 {
            guard budget > 0 else { return false }
            if position == input.count { try receive() }
            let size = Int(min(remaining, budget, Int64(input.count - position)))
            let piece = input[position..<(position + size)]
            position += size
            remaining -= Int64(size)
            budget -= Int64(size)
            try passOn(piece)
        }
        return true
    }

    private func readLine() throws(Failure) -> String {
        while true {
            if let end = input[position...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = input[position..<end]
                position = end + 1
                return String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
            }
            guard input.count - position < 4096 else { throw .malformed("a line of a chunk is too long") }
            try receive()
        }
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
            do throws(Failure) { try receive(within: deadline, evenIfOver: true) } catch { break }
            count += Int64(input.count - position)
            position = input.count
        }
        return count
    }

    /// - Parameter evenIfOver: whether to receive bytes although the scenario is over.
    private func receive(within limit: Deadline? = nil, evenIfOver: Bool = false) throws(Failure) {
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
            throw .ended
        }
        throw .ended
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
