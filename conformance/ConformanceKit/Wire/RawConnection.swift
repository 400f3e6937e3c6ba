import SystemCalls

/// A connection that sends any bytes, valid or invalid, and gives access to every byte that it receives.
///
/// Every operation has a deadline. One thread uses the connection.
package final class RawConnection {
    /// The numbers of bytes and responses above which the harness stops reading.
    enum Bounds {
        static let head = 64 << 10
        static let interimResponses = 2000
        static let keptContent = 1 << 20
        static let content: Int64 = 64 << 20
        /// Bytes that were received while the harness was sending.
        static let readAhead = 1 << 20
    }

    package enum Ending: Sendable, Hashable {
        case closed
        case reset
    }

    package let endpoint: Endpoint
    /// The limit of each operation that has no limit of its own.
    package let timeout: Duration
    let transcript: Transcript
    let number: Int
    /// How the peer ended the connection; `nil` if the connection has not ended.
    package private(set) var ending: Ending?
    /// Whether sending failed because the peer accepts no more bytes.
    package private(set) var isOutputBroken = false

    /// The observer that receives every response with its request, and every deviation from RFC 9112.
    let observer: any WireObserver
    /// The requests without a final response yet, each with the time at which its first byte was sent.
    var awaited: [(request: Request, sentAt: Int64)] = []
    package internal(set) var interim: [InterimResponse] = []
    /// The head of a final response whose content has not been read yet.
    var finalHead: ParsedHead?

    package private(set) var socket: (any ByteStream)?
    /// The number of bytes of content that a response keeps, and the maximum number that it may have.
    package var contentBounds = (kept: Bounds.keptContent, total: Bounds.content)
    /// Everything that was received, if ``shouldKeepInput`` is set.
    package private(set) var received: [UInt8] = []
    package var shouldKeepInput = false
    /// The received bytes; those before `position` have been parsed.
    private(set) var input: [UInt8] = []
    private(set) var position = 0

    /// - Parameter stream: a stream that is connected to the endpoint already; `nil` to open a new stream.
    package init(
        _ endpoint: Endpoint, over stream: (any ByteStream)? = nil, timeout: Duration, transcript: Transcript,
        observer: any WireObserver
    ) throws(WireFailure) {
        self.endpoint = endpoint
        self.timeout = timeout
        self.transcript = transcript
        self.observer = observer
        number = transcript.newConnection()
        do throws(WireFailure) {
            if let stream { socket = stream } else { socket = try endpoint.open(until: Deadline(in: timeout)) }
        } catch {
            transcript.note("\(endpoint.address): \(error)", on: number)
            throw error
        }
        transcript.note("connected to \(endpoint.address)\(endpoint.trust == nil ? "" : " by TLS")", on: number)
    }

    // MARK: - Sending

    /// Sends the head of a request and the content that it contains.
    @discardableResult
    func send(
        _ request: Request, stoppingAtResponse stops: Bool = false, within limit: Duration? = nil
    ) throws(WireFailure) -> Int {
        awaited.append((request, SystemClock.monotonicNanoseconds()))
        observer.observe(sending: request, at: endpoint)
        let head = request.head(authority: endpoint.authority)
        guard case .bytes(let content) = request.content, content.count > 1 << 16 else {
            return try send(head + request.encodedContent, stoppingAtResponse: stops, within: limit) - head.count
        }
        try send(head, within: limit)
        return try send(content, stoppingAtResponse: stops, within: limit)
    }

    /// Sets the requests that are in the bytes to send next.
    func expectResponses(to requests: Request...) {
        awaited = requests.map { ($0, SystemClock.monotonicNanoseconds()) }
    }

    /// Sends bytes until all are sent or the peer accepts no more. Bytes that arrive meanwhile are kept.
    ///
    /// - Parameter stops: whether to stop as soon as a final response arrives.
    /// - Returns: the number of bytes that were sent.
    @discardableResult
    func send(
        _ bytes: [UInt8], stoppingAtResponse stops: Bool = false, within limit: Duration? = nil
    ) throws(WireFailure) -> Int {
        let deadline = Deadline(in: limit ?? timeout)
        var sent = 0
        defer { if sent > 0 { transcript.sent(bytes[..<sent], on: number) } }
        while sent < bytes.count, let socket, !isOutputBroken {
            do throws(Errno) {
                if ending == nil {
                    let ready = try socket.awaitReadiness(until: deadline.nanoseconds)
                    if ready.hasInput && (!ready.isWritable || stops) && input.count - position < Bounds.readAhead {
                        try receiveAvailable()
                        if stops, try responseHasBegun() { break }
                        if !ready.isWritable { continue }
                    }
                }
                let end = min(bytes.count, sent + (64 << 10))
                sent += try socket.send(bytes[sent..<end], until: deadline.nanoseconds)
            } catch {
                guard error != .timedOut else { throw .timedOut("sending, because the peer accepts no more bytes") }
                transcript.note("the peer accepts no more bytes: \(error)", on: number)
                isOutputBroken = true
            }
        }
        return sent
    }

    /// Receives the bytes that have arrived. With TLS these may contain no data, for example a session ticket alone.
    private func receiveAvailable() throws(Errno) {
        do throws(Errno) {
            try receive(until: Deadline(in: .zero))
        } catch {
            if error != .timedOut { throw error }
        }
    }

    /// Sends each byte in a segment of its own.
    func sendByBytes(_ bytes: [UInt8]) throws(WireFailure) {
        for byte in bytes { try send([byte]) }
    }

    /// Ends the output of the connection (FIN).
    package func endOutput() {
        transcript.note("the harness closes its side of the connection", on: number)
        socket?.endOutput()
    }

    /// Resets the connection (RST).
    package func reset() {
        transcript.note("the harness resets the connection", on: number)
        socket?.resetOnClose()
        socket = nil
    }

    package func close() {
        if socket != nil { transcript.note("the harness closes the connection", on: number) }
        socket = nil
    }

    // MARK: - Receiving

    /// The bytes that were received and have not been parsed.
    package var unread: ArraySlice<UInt8> { input[position...] }

    /// Returns whether bytes or the end of the connection arrive within `limit`.
    package func hasInput(within limit: Duration) -> Bool {
        if position < input.count || finalHead != nil || ending != nil { return true }
        let before = input.count
        do throws(Errno) { try receive(until: Deadline(in: limit)) } catch { return false }
        return input.count > before || ending != nil
    }

    /// Waits until the peer has ended the connection, and discards the bytes that arrive before.
    /// - Returns: `nil` if the peer has not ended the connection within `limit`.
    func awaitEnding(within limit: Duration? = nil) throws(WireFailure) -> Ending? {
        let deadline = Deadline(in: limit ?? timeout)
        var discarded: Int64 = 0
        while ending == nil {
            discarded += Int64(input.count - position)
            position = input.count
            guard discarded < contentBounds.total else { throw .flood("\(discarded) bytes after the last response") }
            do throws(Errno) { try receive(until: deadline) } catch { return nil }
        }
        return ending
    }

    /// Waits for at least one byte or the end of the connection, and reads the available bytes into `input`.
    /// - Throws: `ETIMEDOUT`. Other errors are recorded in ``ending``.
    package func receive(until deadline: Deadline) throws(Errno) {
        guard let socket, ending == nil else {
            if ending == nil { ending = .closed }
            return
        }
        if position > 1 << 16 {
            input.removeFirst(position)
            position = 0
        }
        let known = input.count
        var failure: Errno?
        input.append(
            contentsOf: [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                do throws(Errno) {
                    count = try socket.receive(into: UnsafeMutableRawBufferPointer(buffer), until: deadline.nanoseconds)
                } catch {
                    failure = error
                }
            })
        if failure == .timedOut { throw .timedOut }
        if let failure {
            ending = .reset
            transcript.note("the peer reset the connection: \(failure)", on: number)
        } else if input.count == known {
            ending = .closed
            transcript.note("the peer closed its side of the connection", on: number)
        } else {
            transcript.received(input[known...], on: number)
            if shouldKeepInput { received += input[known...] }
        }
    }

    /// Returns the next `count` received bytes, and marks them as parsed.
    func consume(_ count: Int) -> ArraySlice<UInt8> {
        defer { position += count }
        return input[position..<(position + count)]
    }
}

/// Receives every response of a connection, and every deviation from RFC 9112.
package protocol WireObserver: AnyObject {
    func observe(_ response: Response, to request: Request, at endpoint: Endpoint)
    func observe(_ interim: InterimResponse, to request: Request, at endpoint: Endpoint)
    func observe(anomaly: String, in transcript: Transcript)
    /// Receives a description of a response, or of bytes, that belong to no request.
    func observe(unrequested: String, in transcript: Transcript)
    func observe(sending request: Request, at endpoint: Endpoint)
}

extension WireObserver {
    package func observe(unrequested: String, in transcript: Transcript) {
        observe(anomaly: unrequested, in: transcript)
    }
    package func observe(sending request: Request, at endpoint: Endpoint) {}
}

/// An observer that ignores every response.
final class Unobserved: WireObserver, Sendable {
    static let shared = Unobserved()

    func observe(_ response: Response, to request: Request, at endpoint: Endpoint) {}
    func observe(_ interim: InterimResponse, to request: Request, at endpoint: Endpoint) {}
    func observe(anomaly: String, in transcript: Transcript) {}
}

extension RawConnection {
    // MARK: - Sending completely

    /// Sends all of `bytes`.
    /// - Throws: ``WireFailure/reset(_:)`` if the peer accepts no more.
    package func send(all bytes: [UInt8], within limit: Duration? = nil) throws(WireFailure) {
        guard try send(bytes, within: limit) == bytes.count else { throw .reset("sending") }
    }

    /// Sends all of a request.
    /// - Throws: ``WireFailure/reset(_:)`` if the peer accepts no more.
    package func send(all request: Request, within limit: Duration? = nil) throws(WireFailure) {
        guard try send(request, within: limit) == request.encodedContent.count else { throw .reset("sending") }
    }

    /// Sets the method of a request whose bytes were sent with ``send(all:within:)``: a response to HEAD has no content.
    package func expectResponse(to method: String) {
        if awaited.isEmpty { expectResponses(to: Request(method, "*")) }
    }

    /// Sends several requests in one piece.
    package func send(pipelined requests: [Request]) throws(WireFailure) {
        awaited += requests.map { ($0, SystemClock.monotonicNanoseconds()) }
        try send(all: requests.flatMap { $0.head(authority: endpoint.authority) + $0.encodedContent })
    }
}
