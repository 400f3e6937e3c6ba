import HTTPSemantics
import SystemCalls

extension RawConnection {
    /// Sends a request and reads its final response.
    package func exchange(_ request: Request, within limit: Duration? = nil) throws(WireFailure) -> Response {
        try send(request, stoppingAtResponse: true, within: limit)
        return try readResponse(within: limit)
    }

    /// Returns the next interim response; `nil` if the final response precedes it.
    package func readInterim(within limit: Duration? = nil) throws(WireFailure) -> InterimResponse? {
        let deadline = Deadline(in: limit ?? timeout)
        guard finalHead == nil else { return nil }
        let known = interim.count
        try readHead(until: deadline)
        return interim.count > known ? interim.last : nil
    }

    /// Returns the next 104 response; `nil` if no head arrives for the duration `limit`, or if the final response
    /// precedes it.
    func awaitAnnouncement(within limit: Duration) throws(WireFailure) -> InterimResponse? {
        let known = interim.count
        while finalHead == nil, try awaitHead(within: limit) {
            if interim.count > known, let last = interim.last, last.status == 104 { return last }
        }
        return nil
    }

    /// Returns whether a 1xx or final response arrives within `limit`.
    func awaitHead(within limit: Duration) throws(WireFailure) -> Bool {
        if finalHead != nil { return true }
        do throws(WireFailure) {
            try readHead(until: Deadline(in: limit))
            return true
        } catch .timedOut {
            return false
        }
    }

    /// Returns the final response to the oldest unanswered request, with the interim responses that precede it.
    package func readResponse(within limit: Duration? = nil) throws(WireFailure) -> Response {
        let deadline = Deadline(in: limit ?? timeout)
        while finalHead == nil { try readHead(until: deadline) }
        guard let head = finalHead else { throw .malformed("no head") }
        let (request, sentAt) = awaited.isEmpty ? (nil, 0) : awaited.removeFirst()
        if request == nil { observer.observe(unrequested: "a response without a request", in: transcript) }
        let body = try readContent(of: head, to: request?.method ?? "GET", until: deadline)
        finalHead = nil
        let response = Response(
            status: head.status, fields: head.fields, content: body.kept, contentSize: body.size, interim: interim,
            isConnectionEnded: body.isConnectionEnded, requestedAt: sentAt,
            arrivedAt: SystemClock.monotonicNanoseconds())
        interim = []
        if let request { observer.observe(response, to: request, at: endpoint) }
        if body.kept.starts(with: Array("HTTP/1.".utf8)) {
            observer.observe(anomaly: "\(head.status) with a second head in place of its content", in: transcript)
        } else if awaited.isEmpty, position < input.count {
            observer.observe(unrequested: "bytes after the response \(head.status)", in: transcript)
        }
        return response
    }

    /// Returns the next final response; `nil` if the peer closes the connection instead.
    func readResponseUnlessEnded(within limit: Duration? = nil) throws(WireFailure) -> Response? {
        do throws(WireFailure) {
            return try readResponse(within: limit)
        } catch {
            switch error {
            case .closed, .reset: return nil
            default: throw error
            }
        }
    }

    /// Parses the heads that have arrived, and returns whether the head of the final response is one of them.
    func responseHasBegun() throws(Errno) -> Bool {
        while finalHead == nil, ParsedHead.end(of: input, from: position) != nil {
            do throws(WireFailure) { try readHead(until: Deadline(in: .zero)) } catch { return true }
        }
        return finalHead != nil
    }

    // MARK: - Heads

    private func readHead(until deadline: Deadline) throws(WireFailure) {
        while true {
            if let end = ParsedHead.end(of: input, from: position) {
                let head = try ParsedHead(consume(end - position))
                for anomaly in head.anomalies { observer.observe(anomaly: anomaly, in: transcript) }
                guard (100..<200).contains(head.status), head.status != 101 else {
                    finalHead = head
                    return
                }
                guard interim.count < Bounds.interimResponses else {
                    throw .flood("more than \(Bounds.interimResponses) interim responses")
                }
                let next = InterimResponse(
                    status: head.status, fields: head.fields, arrivedAt: SystemClock.monotonicNanoseconds())
                interim.append(next)
                if let request = awaited.first?.request { observer.observe(next, to: request, at: endpoint) }
                return
            }
            guard input.count - position < Bounds.head else {
                throw .flood("a head of more than \(Bounds.head) bytes")
            }
            try receiveMore("waiting for a response", until: deadline)
        }
    }

    // MARK: - Content

    private struct Content {
        let bounds: (kept: Int, total: Int64)
        var kept: [UInt8] = []
        var size: Int64 = 0
        var isConnectionEnded = false

        init(_ bounds: (kept: Int, total: Int64)) { self.bounds = bounds }

        mutating func append(_ bytes: ArraySlice<UInt8>) throws(WireFailure) {
            size += Int64(bytes.count)
            if kept.count < bounds.kept { kept += bytes.prefix(bounds.kept - kept.count) }
            guard size <= bounds.total else { throw .flood("content of more than \(bounds.total) bytes") }
        }
    }

    private func readContent(
        of head: ParsedHead, to method: String, until deadline: Deadline
    ) throws(WireFailure) -> Content {
        var content = Content(contentBounds)
        let lengths = head.fields.values("Content-Length")
        let codings = head.fields.values("Transfer-Encoding")
        if !lengths.isEmpty && !codings.isEmpty {
            observer.observe(anomaly: "both Content-Length and Transfer-Encoding", in: transcript)
        }
        if head.status == 204, !lengths.isEmpty || !codings.isEmpty {
            observer.observe(anomaly: "Content-Length or Transfer-Encoding in a 204", in: transcript)
        }
        if method == "HEAD" || head.status == 204 || head.status == 304 { return content }
        if !codings.isEmpty {
            try readContent(.chunked, into: &content, until: deadline)
        } else if let text = lengths.first {
            guard lengths.allSatisfy({ $0 == text }),
                text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let length = Int64(text)
            else { throw .malformed("an invalid Content-Length: '\(lengths.joined(separator: ", ").prefix(60))'") }
            try readContent(.length(length), into: &content, until: deadline)
        } else {
            content.isConnectionEnded = true
            while ending == nil {
                try content.append(consume(input.count - position))
                do throws(Errno) { try receive(until: deadline) } catch {
                    throw .timedOut("reading content without a length: \(content.size) bytes arrived")
                }
            }
            try content.append(consume(input.count - position))
        }
        return content
    }

    private func readContent(
        _ framing: MessageFraming, into content: inout Content, until deadline: Deadline
    ) throws(WireFailure) {
        // Servers are not tested by the syntax of their chunks, so whatever is unambiguous is accepted.
        var decoder = ContentDecoder(framing, accepting: [.extensions, .lineFeeds, .blanks])
        while !decoder.isComplete {
            if position == input.count {
                let total = if case .length(let length) = framing { " of \(length)" } else { "" }
                try receiveMore("reading content: \(content.size)\(total) bytes arrived", until: deadline)
            }
            var remaining = unread
            let part = try decoder.next(from: &remaining)
            _ = consume(remaining.startIndex - position)
            try content.append(part)
        }
    }

    /// - Parameter what: the operation, which continues the sentence "timeout while …".
    private func receiveMore(_ what: String, until deadline: Deadline) throws(WireFailure) {
        switch ending {
        case .closed: throw .closed(what)
        case .reset: throw .reset(what)
        case nil: break
        }
        do throws(Errno) { try receive(until: deadline) } catch {
            transcript.note("no bytes until the deadline", on: number)
            throw .timedOut(what)
        }
        if ending != nil, position == input.count { try receiveMore(what, until: deadline) }
    }
}
