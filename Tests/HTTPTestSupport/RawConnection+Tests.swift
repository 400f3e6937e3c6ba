import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Records malformed responses as issues of the running test, and records the secrets that are sent.
private final class StrictObserver: WireObserver {
    static func make() -> StrictObserver { StrictObserver() }

    func observe(_ response: Response, to request: Request, at endpoint: Endpoint) {}
    func observe(_ interim: InterimResponse, to request: Request, at endpoint: Endpoint) {
        for name in ["Content-Length", "Transfer-Encoding"] where interim.fields.contains(name) {
            Issue.record("\(name) in \(interim.status)")
        }
    }
    func observe(anomaly: String, in transcript: Transcript) { Issue.record("malformed response: \(anomaly)") }
    // Tests may send bytes that are not a request.
    func observe(unrequested: String, in transcript: Transcript) {}
    func observe(sending request: Request, at endpoint: Endpoint) {
        SentSecrets.record(request, to: endpoint.authority)
    }
}

/// A final response arrived in place of an interim response.
package struct UnexpectedFinalResponse: Error {
    package let response: Response
}

extension RawConnection {
    package static let limit = Duration.seconds(60)

    /// Connects to a port of the loopback interface.
    /// - Parameters:
    ///   - receiveBuffer: the value of SO_RCVBUF; a small value is for a client that reads slowly.
    ///   - source: the last number of the client's address in 127.0.0.0/8.
    package convenience init(port: UInt16, authority: String? = nil, receiveBuffer: Int32? = nil, source: UInt8 = 1)
        throws
    {
        var endpoint = try #require(Endpoint("http://127.0.0.1:\(port)/"))
        if let authority { endpoint.authority = authority }
        var stream: ConnectedSocket?
        if receiveBuffer != nil || source != 1 {
            stream = ConnectedSocket(
                owning: try LoopbackListener.connect(to: port, receiveBuffer: receiveBuffer, source: source))
        }
        try self.init(
            endpoint, over: stream, timeout: Self.limit, transcript: Transcript(), observer: StrictObserver.make())
        prepare()
    }

    /// Connects to a port of the loopback interface with TLS, whatever the certificate is.
    package convenience init(securePort port: UInt16) throws {
        let endpoint = try #require(Endpoint("https://127.0.0.1:\(port)/", trusting: .anyCertificate))
        try self.init(endpoint, timeout: Self.limit, transcript: Transcript(), observer: StrictObserver.make())
        prepare()
    }

    /// Connects to a Unix socket.
    package convenience init(unixPath path: String, authority: String = "localhost") throws {
        var endpoint = try #require(Endpoint("unix:\(path):/"))
        endpoint.authority = authority
        try self.init(endpoint, timeout: Self.limit, transcript: Transcript(), observer: StrictObserver.make())
        prepare()
    }

    private func prepare() {
        contentBounds = (.max, .max)
        shouldKeepInput = true
    }

    /// The value of `Host`.
    package var authority: String { endpoint.authority }
    private var descriptor: Int32 { (socket as? ConnectedSocket)?.rawValue ?? -1 }

    // MARK: - Sending

    package func send(_ bytes: some Collection<UInt8>, within limit: Duration? = nil) throws {
        try send(all: Array(bytes), within: limit)
    }

    package func send(_ text: String) throws { try send(text.utf8) }

    package func send(_ request: Request, within limit: Duration? = nil) throws {
        try send(all: request, within: limit)
    }

    package func sendChunk(_ bytes: [UInt8]) throws { try send(Request.chunk(bytes)) }

    package func sendLastChunk() throws { try send(Request.lastChunk) }

    /// Sends as many bytes as the server accepts, and returns their number: a server that rejects a request need not
    /// read all of them.
    package func sendUntilRefused(_ bytes: some Collection<UInt8>, within limit: Duration = .seconds(10)) -> Int {
        var sent = 0
        var remaining = bytes[...]
        while !remaining.isEmpty {
            let piece = remaining.prefix(64 << 10)
            guard (try? send(piece, within: limit)) != nil else { break }
            sent += piece.count
            remaining = remaining.dropFirst(piece.count)
        }
        return sent
    }

    /// Makes the kernel discard everything that arrives from now on.
    package func stopReceiving() { shutdown(descriptor, Int32(SHUT_RD)) }

    /// Waits until the server's kernel has acknowledged all sent bytes. The server may not have read them yet.
    package func awaitAcknowledgment(within limit: Duration = limit) throws {
        let deadline = Deadline(in: limit)
        while true {
            var unsent: Int32 = 0
            if ioctl(descriptor, UInt(TIOCOUTQ), &unsent) == 0, unsent == 0 { return }
            if deadline.isOver { throw WireFailure.timedOut("waiting for acknowledgments") }
            Deadline.pause(.milliseconds(10))
        }
    }

    // MARK: - Receiving

    /// Reads the next bytes.
    /// - Returns: How the connection ended; `nil` if bytes arrived.
    package func receiveMore(until deadline: Deadline) throws -> Ending? {
        do {
            try receive(until: deadline)
        } catch {
            throw WireFailure.timedOut("receiving, after \(String(decoding: unread.suffix(2000), as: UTF8.self))")
        }
        return ending
    }

    /// Reads until the server closes the connection.
    /// - Returns: How the server closed the connection, and the bytes that belong to no response.
    package func awaitClosing(within limit: Duration = limit) throws -> (closing: Ending, leftover: String) {
        let deadline = Deadline(in: limit)
        while true {
            if let ending = try receiveMore(until: deadline) {
                return (ending, String(decoding: unread, as: UTF8.self))
            }
        }
    }

    /// Whether nothing arrives for this time. Use it only to show that something does *not* happen.
    package func staysSilent(for duration: Duration) -> Bool { unread.isEmpty && !hasInput(within: duration) }

    /// Whether the server has closed the connection or its sending side. Reads nothing.
    package var isClosedByPeer: Bool {
        // 0x2000 is POLLRDHUP, which Glibc does not export to Swift.
        var entry = pollfd(fd: descriptor, events: 0x2000, revents: 0)
        return poll(&entry, 1, 0) == 1
    }

    /// Reads the next final response and the interim responses before it.
    /// - Parameter method: the method of the request, if the request was sent as bytes.
    package func readResponse(to method: String, within limit: Duration? = nil) throws -> Response {
        expectResponse(to: method)
        return try readResponse(within: limit)
    }

    /// Reads the next interim response.
    /// - Throws: ``UnexpectedFinalResponse`` if a final response arrives instead.
    @discardableResult
    package func requireInterim(within limit: Duration? = nil) throws -> InterimResponse {
        if let interim = try readInterim(within: limit) { return interim }
        throw UnexpectedFinalResponse(response: try readResponse(within: limit))
    }

    /// Sends the head of a request with `Expect: 100-continue`, and waits for the 100 with which the server accepts the
    /// head.
    package func open(_ request: Request) throws {
        try send(request.with("Expect", "100-continue").head(authority: authority))
        while try requireInterim().status != 100 {}
    }

    /// Records an issue unless the server closes the connection without another byte.
    package func expectClosed(within limit: Duration = limit, sourceLocation: SourceLocation = #_sourceLocation) {
        do {
            let (_, leftover) = try awaitClosing(within: limit)
            #expect(leftover.isEmpty, "bytes after the last response", sourceLocation: sourceLocation)
        } catch {
            Issue.record(error, "the connection stays open", sourceLocation: sourceLocation)
        }
    }
}
