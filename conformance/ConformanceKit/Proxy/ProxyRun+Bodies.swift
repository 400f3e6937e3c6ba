import HTTPSemantics
import SystemCalls

extension ProxyRun {
    /// The size of the content of a probe, and the size of the part that is sent first.
    private static let size = 300_000
    private static let partSize = 100_000

    private func creation(isChunked: Bool, size: Int = ProxyRun.size) -> Request {
        bench.creation(isChunked ? .openChunks : .declared(Int64(size)))
    }

    private func piece(_ range: Range<Int>, isChunked: Bool) -> [UInt8] {
        let bytes = TestContent.bytes(range.count, from: range.lowerBound)
        return isChunked ? Request.chunk(bytes) : bytes
    }

    /// Checks whether a body reaches the server while it is being sent.
    func body(isChunked: Bool) throws -> Answer {
        let client = try bench.connect()
        try client.send(creation(isChunked: isChunked))
        try client.send(piece(0..<Self.partSize, isChunked: isChunked))
        let sentAt = SystemClock.monotonicNanoseconds()
        let early = bench.awaitRequest()
        let isPartComplete = early?.awaitContent(Int64(Self.partSize), within: bench.timeout) ?? false
        let isStreamed = early.map { $0.content.count > 0 } ?? false
        let missing = Self.partSize - Int(early?.content.count ?? 0)
        let delay = Self.milliseconds(since: sentAt)
        if isStreamed, early?.content.isComplete == true, !isChunked {
            return (.bad, "the server receives a body with a different length")
        }
        if isChunked { behavior.chunkedBody = isStreamed ? .streamed : .withheld }
        if !isChunked { behavior.body = isStreamed ? .streamed : .withheld }
        try client.send(piece(Self.partSize..<Self.size, isChunked: isChunked) + (isChunked ? Request.lastChunk : []))
        let late = early ?? bench.awaitRequest()
        guard let upstream = late, upstream.awaitCompletion(within: bench.timeout), upstream.content.count == Self.size
        else {
            if try client.awaitHead(within: .milliseconds(100)) {
                let status = try client.readResponse().status
                return (.bad, "refused by the proxy: \(status)")
            }
            return (.bad, "incomplete at the server: \(late?.content.count ?? 0) of \(Self.size) bytes")
        }
        upstream.answer(201)
        let response = try client.readResponse()
        let conversion =
            isChunked && upstream.content.framing != .chunked ? ", with a length in place of chunks" : ""
        guard response.status == 201 else { return (.bad, "201 is changed to \(response.status)") }
        if isPartComplete { return (.good, "streamed (\(delay) ms)\(conversion)") }
        return isStreamed
            ? (
                .poor,
                "streamed, but the last \(missing) of \(Self.partSize) bytes are delayed until more bytes follow\(conversion)"
            )
            : (isChunked ? .poor : .bad, "buffered until it is complete\(conversion)")
    }

    /// Checks how 104 responses are forwarded while a body is being sent.
    func interim() throws -> Answer {
        if behavior.isOldHTTP { return (.neutral, "not checked: HTTP/1.0 has no interim responses") }
        if behavior.body == .withheld { return (.neutral, "not checked: the proxy buffers bodies") }
        let client = try bench.connect()
        try client.send(creation(isChunked: false))
        try client.send(piece(0..<Self.partSize, isChunked: false))
        guard let upstream = bench.awaitRequest() else { return (.bad, "the request does not arrive") }
        let version = ("Upload-Draft-Interop-Version", "8")
        upstream.sendInterim(104, [version, ("Location", "/uploads/0123456789abcdef"), ("Upload-Limit", "max-age=60")])
        do {
            var live: [InterimResponse] = []
            if let first = try client.awaitAnnouncement(within: bench.timeout) { live.append(first) }
            try client.send(piece(Self.partSize..<(2 * Self.partSize), isChunked: false))
            _ = upstream.awaitContent(Int64(2 * Self.partSize), within: bench.timeout)
            upstream.sendInterim(104, [version, ("Upload-Offset", "\(2 * Self.partSize)")])
            if let second = try client.awaitAnnouncement(within: bench.timeout) {
                live.append(second)
                if let maximum = countInterims(from: upstream, to: client, version) {
                    behavior.interim = .limited(maximum)
                    return (.poor, "the first \(maximum) are forwarded immediately; the next one ends the request")
                }
            }
            try client.send(piece((2 * Self.partSize)..<Self.size, isChunked: false))
            _ = upstream.awaitCompletion(within: bench.timeout)
            upstream.answer(201, [("Upload-Complete", "?1")])
            return verifyInterim(try client.readResponse(), live)
        } catch {
            return fatal("\(error)")
        }
    }

    /// Returns the number of 104 responses after which the proxy ends the request (Go's HTTP client accepts five);
    /// `nil` if it forwards at least twelve.
    private func countInterims(
        from upstream: UpstreamConnection, to client: RawConnection, _ version: (String, String)
    ) -> Int? {
        for number in 3...12 {
            upstream.sendInterim(104, [version, ("Upload-Offset", "\(2 * Self.partSize)")])
            guard (try? client.awaitAnnouncement(within: bench.timeout)) ?? nil != nil else { return number - 1 }
        }
        return nil
    }

    private func verifyInterim(_ response: Response, _ live: [InterimResponse]) -> Answer {
        let all = response.announcements
        // If a 104 has one of these fields, the proxy handled it as the final response.
        let isFinal = all.contains { interim in
            ["Transfer-Encoding", "Content-Length", "Connection"].contains(where: interim.fields.contains)
        }
        if isFinal {
            behavior.interim = .treatedAsFinal
            return (.bad, "the first 104 is handled as the final response, and the bytes after it as its content")
        }
        guard response.status == 201 else { return fatal("status \(response.status)") }
        if let first = all.first, first.location != "/uploads/0123456789abcdef" {
            behavior.changedFields.append("Location of 104")
            return (.bad, "Location of a 104 is changed to \(first.location ?? "nothing")")
        }
        switch (live.count, all.count) {
        case (2, _): behavior.interim = .live
        case (1, 1): behavior.interim = .firstOnly
        case (_, 0): behavior.interim = .dropped
        default: behavior.interim = live.isEmpty ? .late : .firstOnly
        }
        return switch behavior.interim {
        case .live: (.good, "all are forwarded immediately")
        case .firstOnly: (.poor, "only the first is forwarded in time")
        case .late: (.poor, "arrive only with the final response")
        default: (.poor, "dropped")
        }
    }

    private func fatal(_ what: String) -> Answer {
        behavior.interim = .fatal(what)
        return (.bad, "the upload fails: \(what)")
    }

    /// Checks whether the proxy or the server answers `Expect: 100-continue`.
    func expectation() throws -> Answer {
        let client = try bench.connect()
        try client.send(creation(isChunked: false).with("Expect", "100-continue"))
        let upstream = bench.awaitRequest(within: .milliseconds(bench.timeout.milliseconds / 2))
        let isEarly = try client.awaitHead(within: .milliseconds(50))
        if !isEarly, let upstream, upstream.head.fields.contains("Expect") {
            upstream.sendInterim(100, [])
            let passes = try client.awaitHead(within: bench.timeout)
            try client.send(piece(0..<Self.size, isChunked: false))
            _ = upstream.awaitCompletion(within: bench.timeout)
            upstream.answer(201)
            let status = try client.readResponse().status
            if status != 201 { return (.bad, "201 is changed to \(status)") }
            return passes ? (.good, "the server answers it") : (.poor, "forwarded, but the 100 of the server is lost")
        }
        try client.send(piece(0..<Self.size, isChunked: false))
        guard let served = upstream ?? bench.awaitRequest(), served.awaitCompletion(within: bench.timeout) else {
            return (.poor, "refused by the proxy")
        }
        served.answer(201)
        let response = try client.readResponse()
        if response.status != 201 { return (.bad, "201 is changed to \(response.status)") }
        return isEarly || response.interim.contains { $0.status == 100 }
            ? (.neutral, "the proxy answers it: the server cannot refuse before the body is sent")
            : (.poor, "no 100 is sent: clients wait until their timeout")
    }

    /// Checks what the server receives if a client closes or resets the connection during a body.
    func abort(isChunked: Bool, byReset: Bool) throws -> Answer {
        let client = try bench.connect()
        try client.send(creation(isChunked: isChunked))
        try client.send(piece(0..<Self.partSize, isChunked: isChunked))
        var upstream = bench.awaitRequest()
        // A proxy that streams has forwarded all bytes before the client closes the connection.
        _ = upstream?.awaitContent(Int64(Self.partSize), within: bench.timeout)
        let cutAt = SystemClock.monotonicNanoseconds()
        if byReset { client.reset() } else { client.close() }
        if upstream == nil { upstream = bench.awaitRequest() }
        let seen = upstream.map { upstream -> ProxyBehavior.Abort in
            guard upstream.awaitEnding(within: bench.timeout) else { return .hidden }
            if upstream.content.isComplete { return .looksComplete }
            let missing = max(0, Int64(Self.partSize) - upstream.content.count)
            return .seen(milliseconds: Self.milliseconds(since: cutAt), bytesMissing: missing)
        }
        let abort = seen ?? .neverReceived
        if isChunked {
            behavior.chunkedAbort = abort
        } else if !byReset {
            behavior.abort = abort
        } else if case .looksComplete = abort {
            behavior.abort = .looksComplete
        }
        let how = upstream?.ending == .reset ? "as a reset" : "as a close"
        switch abort {
        case .seen(let time, 0): return (.good, "the server detects it after \(time) ms \(how); no bytes are lost")
        case .seen(let time, let missing):
            return (
                .poor, "the server detects it after \(time) ms \(how); \(missing) of \(Self.partSize) bytes are lost"
            )
        case .hidden: return (.poor, "the server does not detect it within \(bench.timeout.milliseconds) ms")
        case .looksComplete: return (.bad, "the server receives a body that ends as if it were complete")
        case .neverReceived: return (.bad, "the server never receives the request")
        }
    }

    /// Checks whether a response during a body reaches the client.
    func earlyAnswer() throws -> Answer {
        if behavior.body == .withheld { return (.neutral, "not checked: the proxy buffers bodies") }
        let total = 3_000_000
        let client = try bench.connect()
        try client.send(creation(isChunked: false, size: total))
        try client.send(piece(0..<Self.partSize, isChunked: false))
        guard let upstream = bench.awaitRequest() else { return (.bad, "the request does not arrive") }
        _ = upstream.awaitContent(Int64(Self.partSize), within: bench.timeout)
        let start = SystemClock.monotonicNanoseconds()
        upstream.answer(409, [("Upload-Offset", "5"), ("Upload-Complete", "?0")], Array("early".utf8))
        if try client.awaitHead(within: bench.timeout) {
            let time = Self.milliseconds(since: start)
            let response = try client.readResponse()
            guard response.status == 409, response.integer("Upload-Offset") == 5 else {
                behavior.earlyAnswer = .lost("\(response.status)")
                return (.poor, "409 is changed to \(response.summary)")
            }
            behavior.earlyAnswer = .passed(milliseconds: time)
            return (.good, "forwarded after \(time) ms")
        }
        do {
            // The upstream reads the body, so that sending is not blocked.
            for start in stride(from: Self.partSize, to: total, by: Self.partSize) {
                try client.send(piece(start..<(start + Self.partSize), isChunked: false), stoppingAtResponse: true)
                // Proxies that are written in Go forward the response as soon as they have read more of the body.
                if start == Self.partSize, try client.awaitHead(within: bench.timeout), client.finalHead?.status == 409
                {
                    _ = try client.readResponse()
                    behavior.earlyAnswer = .passed(milliseconds: 0)
                    return (.good, "forwarded after the next bytes of the body")
                }
                _ = upstream.awaitContent(Int64(start + Self.partSize), within: bench.timeout)
            }
            let response = try client.readResponse()
            behavior.earlyAnswer = response.status == 409 ? .late : .lost("\(response.status)")
            return response.status == 409
                ? (.poor, "arrives only after the body")
                : (.poor, "409 is changed to \(response.status), after the body")
        } catch {
            behavior.earlyAnswer = .lost("\(error)")
            return (.poor, "lost: \(error)")
        }
    }

    /// Determines the longest body that the proxy forwards. Only the first bytes of each body are sent.
    func bodyLimit() throws -> Answer {
        if behavior.body == .withheld { return (.neutral, "not checked: the proxy buffers bodies") }
        for length: Int64 in [1 << 20, (1 << 20) + 1, 16 << 20, 1 << 28, 1 << 31, 1 << 34, 1 << 40] {
            bench.begin()
            let client = try bench.connect()
            try client.send(bench.creation(.declared(length)))
            try client.send(piece(0..<Self.partSize, isChunked: false))
            guard let upstream = bench.awaitRequest(), upstream.content.framing == .length(length) else {
                behavior.refusedContent = length
                let status =
                    (try? client.awaitHead(within: .milliseconds(200))) == true
                    ? (try? client.readResponse()).map { "\($0.status)" } : nil
                return (
                    .poor,
                    "\(behavior.longestContent ?? 0) bytes are forwarded, \(length) get \(status ?? "no response")"
                )
            }
            behavior.longestContent = length
            upstream.answer(409)
            client.close()
        }
        return (.good, "no limit up to 1 TiB")
    }
}
