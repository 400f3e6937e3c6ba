import ConformanceKit
import HTTPSemantics
import Testing

extension RawConnection {
    /// Sends a request and reads its final response.
    func exchange(_ request: Request, within limit: Duration = .seconds(60)) throws -> Response {
        try send(request, within: limit)
        return try readResponse(to: request.method, within: limit)
    }

    /// Reads the next final response and the interim ones before it.
    /// - Parameter method: of the request: a response to `HEAD` has no content.
    func readResponse(to method: String = "GET", within limit: Duration = .seconds(60)) throws -> Response {
        let deadline = Deadline(in: limit)
        while true {
            let head = try readHead(until: deadline)
            if head.isInterim {
                try record(head)
                continue
            }
            defer { interim = [] }
            let body = try readBody(of: head, method: method, until: deadline)
            return Response(
                version: head.version, status: head.status, reason: head.reason, fields: head.fields, body: body,
                interim: interim, arrivedAt: .now)
        }
    }

    /// Reads the next interim response.
    /// - Throws: `WireFailure.unexpectedFinal` where a final one comes instead.
    @discardableResult
    func readInterim(within limit: Duration = .seconds(60)) throws -> InterimResponse {
        let deadline = Deadline(in: limit)
        let head = try readHead(until: deadline)
        guard head.isInterim else {
            let body = try readBody(of: head, method: "GET", until: deadline)
            throw WireFailure.unexpectedFinal(
                Response(
                    version: head.version, status: head.status, reason: head.reason, fields: head.fields, body: body,
                    interim: interim, arrivedAt: .now))
        }
        return try record(head)
    }

    /// Sends the head of a request that asks for 100, and waits for it: from then on the server is serving the request.
    func open(_ request: Request, within limit: Duration = .seconds(60)) throws {
        try send(request.with("Expect", "100-continue").head(authority: authority), within: limit)
        while try readInterim(within: limit).status != 100 {}
    }

    /// Records an issue unless the server closes the connection without another byte.
    func expectClosed(
        within limit: Duration = .seconds(60), sourceLocation: SourceLocation = #_sourceLocation
    ) {
        do {
            let (_, leftover) = try awaitClosing(within: limit)
            #expect(leftover.isEmpty, "bytes after the last response", sourceLocation: sourceLocation)
        } catch {
            Issue.record(error, "the connection stays open", sourceLocation: sourceLocation)
        }
    }

    // MARK: - Parsing, stricter than clients are

    private struct Head {
        let version: String
        let status: Int
        let reason: String
        let fields: Fields

        var isInterim: Bool { (100..<200).contains(status) }
    }

    @discardableResult
    private func record(_ head: Head) throws -> InterimResponse {
        for name in ["Content-Length", "Transfer-Encoding"] where head.fields.contains(name) {
            throw WireFailure.malformed("\(name) in \(head.status)")
        }
        let response = InterimResponse(status: head.status, fields: head.fields, arrivedAt: .now)
        interim.append(response)
        return response
    }

    private func readHead(until deadline: Deadline) throws -> Head {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let range = buffer.firstRange(of: end) {
                let text = String(decoding: buffer[..<range.lowerBound], as: UTF8.self)
                buffer.removeSubrange(..<range.upperBound)
                return try parse(text)
            }
            switch try receiveMore(until: deadline) {
            case nil: continue
            case .end?: throw WireFailure.closed(leftover: String(decoding: buffer, as: UTF8.self))
            case .reset?: throw WireFailure.reset
            }
        }
    }

    private func parse(_ text: String) throws -> Head {
        // A bare CR or LF must not occur, and "\r\n" is one character of Swift.
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
        let first = lines[0].split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard first.count == 3, first[0] == "HTTP/1.1" || first[0] == "HTTP/1.0", first[1].count == 3,
            let status = Int(first[1]), (100...599).contains(status)
        else { throw WireFailure.malformed("status line \(lines[0].debugDescription)") }
        var fields = Fields()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else {
                throw WireFailure.malformed("field line \(line.debugDescription)")
            }
            let name = String(line[..<colon])
            let value = String(line[line.index(after: colon)...])
            guard Fields.isValidName(name), Fields.isValidValue(value) else {
                throw WireFailure.malformed("field line \(line.debugDescription)")
            }
            fields.append(name, value)
        }
        return Head(version: String(first[0]), status: status, reason: String(first[2]), fields: fields)
    }

    private func readBody(of head: Head, method: String, until deadline: Deadline) throws -> [UInt8] {
        if head.status == 204 && (head.fields.contains("Content-Length") || head.fields.contains("Transfer-Encoding")) {
            throw WireFailure.malformed("framing fields in 204")
        }
        if method == "HEAD" || head.status == 204 || head.status == 304 { return [] }
        if let coding = head.fields["Transfer-Encoding"] {
            guard coding == "chunked" else { throw WireFailure.malformed("Transfer-Encoding: \(coding)") }
            return try readChunks(until: deadline)
        }
        let lengths = head.fields.values("Content-Length")
        if lengths.isEmpty { return try readToEnd(until: deadline) }
        guard lengths.count == 1, let length = Int(lengths[0]) else {
            throw WireFailure.malformed("Content-Length \(lengths)")
        }
        return try take(length, until: deadline)
    }

    private func take(_ count: Int, until deadline: Deadline) throws -> [UInt8] {
        while buffer.count < count {
            switch try receiveMore(until: deadline) {
            case nil: continue
            case .end?: throw WireFailure.closed(leftover: "\(buffer.count) of \(count) bytes of content")
            case .reset?: throw WireFailure.reset
            }
        }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }

    private func readToEnd(until deadline: Deadline) throws -> [UInt8] {
        while true {
            switch try receiveMore(until: deadline) {
            case nil: continue
            case .end?:
                defer { buffer = [] }
                return buffer
            case .reset?: throw WireFailure.reset
            }
        }
    }

    private func readChunks(until deadline: Deadline) throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            var line: [UInt8] = []
            while !line.elementsSuffix("\r\n") { line += try take(1, until: deadline) }
            guard let size = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16) else {
                throw WireFailure.malformed("chunk size")
            }
            body += try take(size, until: deadline)
            guard try take(2, until: deadline) == Array("\r\n".utf8) else { throw WireFailure.malformed("chunk end") }
            if size == 0 { return body }
        }
    }
}

extension [UInt8] {
    fileprivate func elementsSuffix(_ text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
