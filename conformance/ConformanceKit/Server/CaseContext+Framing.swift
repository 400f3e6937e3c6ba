extension CaseContext {
    /// Sends a creation with these lines and content as they are; nil where the connection ends without a response.
    func answer(_ lines: [String], _ content: [UInt8]) throws -> Response? {
        let (connection, request) = try send(lines, content, version: "HTTP/1.1", hasHost: true)
        let response = try connection.readResponseUnlessEnded()
        keep(response, to: request)
        return response
    }

    /// The same with a request behind it.
    func answers(
        to lines: [String], _ content: [UInt8], version: String, hasHost: Bool, allowing leniency: Leniency
    ) throws -> RawAnswers {
        let behind = Request("OPTIONS", subject.newTarget(), subject.extraFields)
        let head = behind.head(authority: subject.endpoint.authority)
        let (connection, request) = try send(lines, content + head, version: version, hasHost: hasHost)
        if leniency.contains(.goingOn) { connection.expectResponses(to: request, behind, behind) }
        var answers = RawAnswers()
        do throws(WireFailure) {
            let usesFullTimeout = !leniency.contains(.waiting)
            answers.first = try connection.readResponseUnlessEnded(
                within: usesFullTimeout ? nil : min(.seconds(2), subject.timeout))
        } catch {
            guard case .timedOut = error, leniency.contains(.waiting) else { throw error }
        }
        guard let first = answers.first else { return answers }
        keep(first, to: request)
        answers.count = 1
        while answers.count < 3, (try? connection.awaitHead(within: .milliseconds(300))) == true {
            answers.count += 1
            guard let next = try? connection.readResponse() else { break }
            if answers.second == nil { answers.second = next }
        }
        if answers.count == 1, !leniency.contains(.goingOn) {
            answers.isEnded = (try? connection.awaitEnding(within: min(.seconds(5), subject.timeout))) ?? nil != nil
        }
        return answers
    }

    private func send(
        _ lines: [String], _ content: [UInt8], version: String, hasHost: Bool
    ) throws -> (RawConnection, Request) {
        var request = creation(complete: true)
        request.version = version
        request.hasHost = hasHost
        let connection = try connect()
        var bytes = Array(request.head(authority: connection.endpoint.authority).dropLast(2))
        bytes += Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        connection.expectResponses(to: request)
        try connection.send(bytes + content)
        return (connection, request)
    }

    /// What was announced is canceled in the end.
    private func keep(_ response: Response?, to request: Request) {
        guard let location = response?.announcements.first?.location else { return }
        _ = try? upload(at: location, of: request, location)
    }

    /// A head that is far too long is answered by one of these, or by the end of the connection.
    func expectLimited(_ bytes: [UInt8], _ statuses: [Int]) throws {
        let connection = try connect()
        connection.expectResponses(to: Request("OPTIONS", "*"))
        try connection.send(bytes, stoppingAtResponse: true)
        guard let response = try connection.readResponseUnlessEnded() else { return }
        try expect(response, isOneOf: statuses, "to a megabyte")
    }
}
