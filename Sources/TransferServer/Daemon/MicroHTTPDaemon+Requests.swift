import CMicroHTTPD
import HTTPSemantics
import SystemCalls
import UploadStorage

// One request, from its head to its end. Called on the thread of the connection.
extension MicroHTTPDaemon {
    /// - Parameter hasContent: whether libmicrohttpd has received a signal of ``RequestReader``.
    func serve(
        _ request: RequestContext, on connection: AcceptedConnection, hasContent: Bool
    ) -> MHD_Result {
        let entry = connection.entry
        switch request.stage {
        case .begun:
            entry.enter(.server, at: SystemClock.monotonicNanoseconds())
            return begin(request, on: connection)
        case .receiving:
            guard let exchange = request.exchange else { return .NO }
            guard hasContent else { return finish(request, by: exchange, on: connection) }
            return ContentBuffers.shared.withBuffer { buffer in
                switch connection.readContent(into: buffer) {
                case .bytes(let count):
                    let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                    return receive(bytes, of: request, by: exchange, on: connection)
                case .none: return check(request, exchange, on: connection)
                case .malformed(let refusal):
                    // The content before the error is kept.
                    connection.awaiting = nil
                    exchange.end(.interrupted)
                    request.exchange = nil
                    return respondEarly(Response(ProblemDetails(refusal)), to: request, on: connection)
                }
            }
        case .responding(let response):
            return queue(response, to: request, on: connection)
        case .discarding:
            // The response was sent. Content is still read, because the kernel would otherwise reset the connection,
            // and the client could lose the response.
            guard hasContent else { return .NO }
            let content = ContentBuffers.shared.withBuffer { connection.readContent(into: $0) }
            if case .bytes(let count) = content {
                request.contentReceived += Int64(count)
                request.discarded += Int64(count)
            }
            return request.discarded < RequestReader.maxDiscarded ? .YES : .NO
        case .queued:
            return .NO
        }
    }

    private func finish(
        _ request: RequestContext, by exchange: any Exchange, on connection: AcceptedConnection
    ) -> MHD_Result {
        connection.entry.enter(.server, at: SystemClock.monotonicNanoseconds())
        connection.awaiting = nil
        guard let response = request.response(of: exchange.finish()) else { return .NO }
        return queue(response, to: request, on: connection)
    }

    /// The threads of requests with at least this number of bytes of content let the threads of other requests run first.
    private static let largeContent: Int64 = 4 << 20

    private func receive(
        _ bytes: UnsafeRawBufferPointer, of request: RequestContext, by exchange: any Exchange,
        on connection: AcceptedConnection
    ) -> MHD_Result {
        let entry = connection.entry
        request.contentReceived += Int64(bytes.count)
        if !request.shouldYield, request.contentReceived >= Self.largeContent {
            request.shouldYield = true
            WorkerThread.setYieldsToOthers(true)
        }
        // While the server stores content, the timeouts for the client do not apply. After the last byte of content
        // they do not apply until the response is sent.
        entry.enter(
            request.isCompletelyReceived ? .server : .storing, received: bytes.count,
            at: SystemClock.monotonicNanoseconds())
        let step = exchange.receive(bytes)
        if !request.isCompletelyReceived { entry.enter(.content, at: SystemClock.monotonicNanoseconds()) }
        return proceed(step, request, on: connection)
    }

    /// Handles a signal of the filter without content: the exchange may have a response for the client.
    private func check(
        _ request: RequestContext, _ exchange: any Exchange, on connection: AcceptedConnection
    ) -> MHD_Result {
        guard exchange.hasEarlyResponse else { return .YES }
        let pause = connection.entry.interruptPause(at: SystemClock.monotonicNanoseconds())
        let step = exchange.check()
        connection.entry.continuePause(pause)
        return proceed(step, request, on: connection)
    }

    private func proceed(
        _ step: RequestStep?, _ request: RequestContext, on connection: AcceptedConnection
    ) -> MHD_Result {
        guard let step else { return .YES }
        guard let response = request.response(of: step) else { return .NO }
        connection.awaiting = nil
        return respondEarly(response, to: request, on: connection)
    }

    private func begin(_ request: RequestContext, on connection: AcceptedConnection) -> MHD_Result {
        let head = request.head
        if [.put, .post, .patch].contains(head.method) { request.explanation = UploadExplanation() }
        let target: RequestTarget
        switch request.received.evaluation {
        case .accepted(let framing, let acceptedTarget): (request.framing, target) = (framing, acceptedTarget)
        case .refused(let refusal):
            request.responseFields = service.responseFields(for: head.fields, isSecure: request.isSecure)
            // Nothing after the request on this connection is served.
            return respondEarly(Response(ProblemDetails(refusal)), to: request, on: connection)
        }
        // The origin is evaluated only if the head is valid.
        request.origin = service.origin(of: head.fields, peer: connection.entry.peer)
        request.interim = connection.interimChannel(version: head.version, base: request.origin.base)
        request.responseFields = service.responseFields(for: head.fields, isSecure: request.isSecure)
        if connection.entry.peerClient.isExempt, let client = service.client(of: head.fields, origin: request.origin) {
            registry.count(connection.entry, for: client)
            request.isCountedForClient = true
        }
        request.receiveShortContent = { connection.receiveShortContent() }
        defer { request.receiveShortContent = { false } }
        let step = service.begin(request, for: target)
        if case .receive(let exchange) = step { return beginReceiving(request, by: exchange, on: connection) }
        guard let response = request.response(of: step) else { return .NO }
        return respondWithoutContent(response, to: request, on: connection)
    }

    private func beginReceiving(
        _ request: RequestContext, by exchange: any Exchange, on connection: AcceptedConnection
    ) -> MHD_Result {
        request.stage = .receiving
        request.exchange = exchange
        if !request.isCompletelyReceived {
            if exchange.checkInterval != nil { connection.awaiting = exchange }
            connection.entry.enter(.content, at: SystemClock.monotonicNanoseconds())
            // The client may be slow, and the thread has used more of its stack than it needs for content.
            if !connection.hasInput { ThreadStack.releaseUnused() }
        }
        // libmicrohttpd does not get the Expect field, so the server sends 100 itself.
        if request.isContentExpected, request.expectation == .continue100 {
            guard connection.output.send(Self.continueHead, timeout: Self.sendTimeout) == .sent else { return .NO }
        }
        return .YES
    }

    /// Sends a response for which the content of the request is not needed.
    private func respondWithoutContent(
        _ response: Response, to request: RequestContext, on connection: AcceptedConnection
    ) -> MHD_Result {
        guard request.isContentExpected else {
            if response.status == .lengthRequired {
                // Content without a length can follow.
                request.shouldLinger = true
                return queue(response, to: request, on: connection)
            }
            // The response is queued at the end of the request, so that the connection stays open.
            request.stage = .responding(response)
            return .YES
        }
        // A client that waits for 100 gets the final status instead.
        if request.expectation == .continue100 {
            // The client may have stopped waiting and started to send content. libmicrohttpd would close the connection
            // immediately, so the server keeps it open for a moment.
            request.shouldLinger = true
            return queue(response, to: request, on: connection)
        }
        return respondEarly(response, to: request, on: connection)
    }

    /// The time in milliseconds in which the socket must accept a response that the server writes itself.
    private static let sendTimeout: Int32 = 2000
    private static let continueHead = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// Sends a response before the content has ended, which libmicrohttpd cannot do. The server writes the response
    /// itself, ends its output, and discards input until the client closes the connection or a timeout ends it.
    private func respondEarly(
        _ response: Response, to request: RequestContext, on connection: AcceptedConnection
    ) -> MHD_Result {
        let response = request.complete(loaded(response, for: request))
        let content = response.content.bytes ?? []
        var fields = response.fields
        if !response.status.isContentForbidden { fields.set("Content-Length", "\(content.count)") }
        fields.set("Connection", "close")
        let head = ResponseHead(status: response.status, fields: fields)
        let isHead = request.method == .head
        let outcome = connection.output.send(head.serialized() + (isHead ? [] : content), timeout: Self.sendTimeout)
        guard outcome == .sent else { return .NO }
        request.sent?.isQueued = true
        connection.output.endOutput()
        connection.entry.enter(.discarding, at: SystemClock.monotonicNanoseconds())
        request.stage = .discarding
        return .YES
    }

    /// Reads all content into memory. A response that reports the failure replaces one whose content cannot be read.
    private func loaded(_ response: Response, for request: RequestContext) -> Response {
        do { return try response.loaded() } catch {
            service.contentFailed(error, request: request.id)
            return Response((error as? StoreError).map { ProblemDetails($0) } ?? ProblemDetails.contentFailed)
        }
    }

    /// Up to this number of bytes, content of a file is read into memory: libmicrohttpd sends it together with the head,
    /// which needs fewer system calls than sendfile(2).
    private static let maxCopied: Int64 = 16 << 10

    private func queue(
        _ response: Response, to request: RequestContext, on connection: AcceptedConnection
    ) -> MHD_Result {
        var response = response
        if case .stream(let stream) = response.content, stream is FileContent, request.method != .head,
            !response.status.isContentForbidden, stream.length.map({ $0 <= Self.maxCopied }) ?? false
        {
            response = loaded(response, for: request)
        }
        response = request.complete(response)
        request.stage = .queued
        let entry = connection.entry
        let service = service
        let id = request.id
        let isEndedByClosing = response.content.length == nil && request.head.version == .http10
        let outgoing = OutgoingResponse(
            response, isSecure: entry.credentials != nil, isHead: request.method == .head,
            events: .init(
                streamed: { request.sent?.bytes += Int64($0) },
                failed: { error in
                    service.contentFailed(error, request: id)
                    entry.failContent(resets: isEndedByClosing)
                }))
        guard let outgoing else { return .NO }
        // The kernel gets short content in memory at once, together with the head.
        let isShort = response.content.bytes.map { $0.count <= Self.maxCopied } ?? false
        if !isShort {
            request.sent?.acknowledgedBefore = entry.output.acknowledgedBytes()
        }
        guard connection.queue(outgoing, status: response.status) else { return .NO }
        entry.enter(.response, at: SystemClock.monotonicNanoseconds())
        request.sent?.isQueued = true
        return .YES
    }

    /// - Parameter isComplete: whether libmicrohttpd has received the entire request and sent the entire response.
    func complete(_ request: RequestContext, on connection: AcceptedConnection, isComplete: Bool) {
        let end: RequestEnd
        if case .discarding = request.stage { end = .answered } else { end = isComplete ? .answered : .interrupted }
        connection.awaiting = nil
        request.exchange?.end(end)
        request.exchange = nil
        if request.shouldYield { WorkerThread.setYieldsToOthers(false) }
        service.record(request.summary(end))
        if request.isCountedForClient { registry.count(connection.entry, for: connection.entry.peerClient) }
        if request.shouldLinger {
            // Without this the kernel would reset the connection because of unread content, and the client could lose
            // the response.
            connection.output.endOutput()
            connection.entry.enter(.discarding, at: SystemClock.monotonicNanoseconds())
            connection.stopReading()
            connection.output.discardInput(atMost: RequestReader.maxDiscarded)
        }
        connection.entry.enter(.head(first: false), at: SystemClock.monotonicNanoseconds())
    }
}

/// Memory for content from its receipt until it is stored.
///
/// All connections share a few large buffers. The buffer that was used last is used again first, so that it is in the
/// cache of the processor. While all of them are in use, content is received in smaller pieces: the disk is slow, or the
/// processors are busy, and have interrupted many threads that use a buffer.
private final class ContentBuffers: Sendable {
    static let shared = ContentBuffers(count: 16, size: 512 << 10)

    private struct State {
        var unused: [UnsafeMutableRawBufferPointer] = []
        var allocated = 0
    }

    private static let smallSize = 64 << 10

    private let count: Int
    private let size: Int
    private let state: Monitor<State>

    init(count: Int, size: Int) {
        self.count = count
        self.size = size
        state = Monitor(State())
    }

    deinit { state.withLock { for buffer in $0.unused { buffer.deallocate() } } }

    /// Calls `body` with a buffer, whose content is undefined.
    func withBuffer<Result>(_ body: (UnsafeMutableRawBufferPointer) -> Result) -> Result {
        guard let buffer = largeBuffer() else {
            return withUnsafeTemporaryAllocation(byteCount: Self.smallSize, alignment: 64, body)
        }
        defer { state.withLock { $0.unused.append(buffer) } }
        return body(buffer)
    }

    private func largeBuffer() -> UnsafeMutableRawBufferPointer? {
        state.withLock { state in
            if let buffer = state.unused.popLast() { return buffer }
            if state.allocated == count { return nil }
            state.allocated += 1
            return .allocate(byteCount: size, alignment: 4096)
        }
    }
}
