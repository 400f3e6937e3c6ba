import HTTPSemantics
import SystemCalls

/// The upstream's side of a connection that the proxy opened, for one request. One thread uses it.
final class UpstreamConnection {
    let head: RequestHead
    private(set) var content: ContentDecoder
    private(set) var ending: RawConnection.Ending?
    /// The time, in monotonic nanoseconds, at which the head was complete.
    let arrivedAt: Int64
    private let transcript: Transcript
    private let number: Int
    private var socket: ConnectedSocket?

    /// Reads the head of a request.
    /// - Throws: ``WireFailure`` if no head arrives, or if the head is malformed.
    init(_ socket: ConnectedSocket, transcript: Transcript, until deadline: Deadline) throws(WireFailure) {
        var bytes: [UInt8] = []
        var end: Int?
        repeat {
            let piece = try Self.receive(socket, until: deadline)
            if piece.isEmpty { throw .closed("reading a request of the proxy") }
            bytes += piece
            if bytes.count > 1 << 20 { throw .flood("a request head of more than a megabyte") }
            end = ParsedHead.end(of: bytes, from: 0)
        } while end == nil
        let length = end ?? bytes.count
        head = try RequestHead(received: bytes[..<length])
        arrivedAt = SystemClock.monotonicNanoseconds()
        switch MessageFraming.evaluate(head) {
        case .success(let framing): content = ContentDecoder(framing, accepting: [.extensions, .lineFeeds, .blanks])
        case .failure: throw .malformed("invalid framing of the proxy's request")
        }
        self.socket = socket
        self.transcript = transcript
        number = transcript.newConnection()
        transcript.note("the proxy connected to its upstream", on: number)
        transcript.received(bytes[..<length], on: number)
        decode(bytes[length...])
    }

    private static func receive(_ socket: ConnectedSocket, until deadline: Deadline) throws(WireFailure) -> [UInt8] {
        var failure: Errno?
        let bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
            do throws(Errno) {
                count = try socket.receive(into: UnsafeMutableRawBufferPointer(buffer), until: deadline.nanoseconds)
            } catch {
                failure = error
            }
        }
        guard let failure else { return bytes }
        throw failure == .timedOut
            ? WireFailure.timedOut("reading from the proxy") : WireFailure.reset("reading from the proxy")
    }

    // MARK: - Receiving

    /// Waits until `count` bytes of the content have arrived.
    func awaitContent(_ count: Int64, within limit: Duration) -> Bool {
        let deadline = Deadline(in: limit)
        while content.count < count, !content.isComplete, receive(until: deadline) {}
        return content.count >= count
    }

    /// Waits until the content is complete.
    func awaitCompletion(within limit: Duration) -> Bool {
        let deadline = Deadline(in: limit)
        while !content.isComplete, receive(until: deadline) {}
        return content.isComplete
    }

    /// Waits until the proxy ends the connection or the content is complete.
    /// - Returns: false if neither happens in time.
    func awaitEnding(within limit: Duration) -> Bool {
        let deadline = Deadline(in: limit)
        while !content.isComplete, receive(until: deadline) {}
        return ending != nil || content.isComplete
    }

    /// Content that is malformed never becomes complete.
    private func decode(_ bytes: ArraySlice<UInt8>) {
        var remaining = bytes
        while !remaining.isEmpty, !content.isComplete, (try? content.next(from: &remaining)) != nil {}
    }

    /// Receives bytes.
    /// - Returns: false if the connection has ended or the deadline has passed.
    private func receive(until deadline: Deadline) -> Bool {
        guard let socket, ending == nil else { return false }
        do throws(WireFailure) {
            let bytes = try Self.receive(socket, until: deadline)
            if bytes.isEmpty {
                ending = .closed
                transcript.note("the proxy closed its side of the connection", on: number)
            } else {
                transcript.received(bytes, on: number)
                decode(bytes[...])
            }
        } catch {
            if case .timedOut = error { return false }
            ending = .reset
            transcript.note("the proxy reset the connection", on: number)
        }
        return ending == nil
    }

    // MARK: - Sending

    /// Sends an interim response.
    func sendInterim(_ status: Int, _ fields: [(String, String)]) { send(status, fields, nil) }

    /// Sends a final response and ends the output of the connection.
    func answer(_ status: Int, _ fields: [(String, String)] = [], _ content: [UInt8] = []) {
        send(status, fields + [("Connection", "close")], content)
        socket?.endOutput()
    }

    private func send(_ status: Int, _ fields: [(String, String)], _ content: [UInt8]?) {
        var text = "HTTP/1.1 \(status) \(Self.reasons[status] ?? "Status")\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if let content, status != 204 { text += "Content-Length: \(content.count)\r\n" }
        let bytes = Array((text + "\r\n").utf8) + (head.method == .head ? [] : content ?? [])
        let deadline = Deadline(in: .seconds(5))
        var remaining = bytes[...]
        while !remaining.isEmpty, let socket {
            do throws(Errno) {
                remaining = remaining.dropFirst(try socket.send(remaining, until: deadline.nanoseconds))
            } catch {
                transcript.note("the proxy accepts no more bytes: \(error)", on: number)
                break
            }
        }
        transcript.sent(bytes.dropLast(remaining.count), on: number)
    }

    private static let reasons = [
        100: "Continue", 104: "Upload Resumption Supported", 200: "OK", 201: "Created", 204: "No Content",
        206: "Partial Content", 409: "Conflict",
    ]
}
