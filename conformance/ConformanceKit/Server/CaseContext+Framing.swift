extension CaseContext {
    /// Sends a creation with these field lines and this content, exactly as they are.
    /// - Returns: `nil` if the connection ends without a response.
    func answer(_ lines: [String], _ content: [UInt8]) throws -> Response? {
        let (connection, request) = try send(lines, content, version: "HTTP/1.1", hasHost: true)
        let response = try connection.readResponseUnlessEnded()
        recordUpload(of: response, to: request)
        return response
    }

    /// Sends a creation with these field lines and this content, and another request after it.
    func answers(
        to lines: [String], _ content: [UInt8], version: String, hasHost: Bool, allowing leniency: Leniency
    ) throws -> RawAnswers {
        let next = Request("OPTIONS", subject.newTarget(), subject.extraFields)
        let head = next.head(authority: subject.endpoint.authority)
        let (connection, request) = try send(lines, content + head, version: version, hasHost: hasHost)
        // A peer that accepts the content responds to the next request too. The case evaluates the number of responses.
        connection.expectResponses(to: request, next, next)
        var answers = RawAnswers()
        do throws(WireFailure) {
            let usesFullTimeout = !leniency.contains(.waiting)
            answers.first = try connection.readResponseUnlessEnded(
                within: usesFullTimeout ? nil : min(.seconds(2), subject.timeout))
        } catch {
            guard case .timedOut = error, leniency.contains(.waiting) else { throw error }
        }
        guard let first = answers.first else { return answers }
        recordUpload(of: first, to: request)
        answers.count = 1
        while answers.count < 3, (try? connection.awaitHead(within: .milliseconds(300))) == true {
            answers.count += 1
            guard let response = try? connection.readResponse() else { break }
            if answers.second == nil { answers.second = response }
        }
        if answers.count == 1, !leniency.contains(.openConnection) {
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

    /// Records an announced upload, so that it is canceled at the end of the case.
    private func recordUpload(of response: Response?, to request: Request) {
        guard let location = response?.announcements.first?.location else { return }
        _ = try? upload(at: location, of: request, location)
    }

    /// Expects that a head that is too long gets one of these statuses, or that the connection is closed.
    func expectLimited(_ bytes: [UInt8], _ statuses: [Int]) throws {
        let connection = try connect()
        connection.expectResponses(to: Request("OPTIONS", "*"))
        try connection.send(bytes, stoppingAtResponse: true)
        guard let response = try connection.readResponseUnlessEnded() else { return }
        try expect(response, isOneOf: statuses, "to a head of a megabyte")
    }
}

/// The responses to bytes that contain a request and another request after its content.
struct RawAnswers {
    /// The first response; `nil` if the connection ended without a response, or if no response arrived and the server
    /// may wait for more content.
    var first: Response?
    var second: Response?
    /// The number of responses, including those that could not be read.
    var count = 0
    /// Whether the connection ended after the first response.
    var isEnded = false
}

/// Behavior that is also correct, in addition to a refusal after which the server closes the connection.
struct Leniency: OptionSet {
    let rawValue: Int

    /// The connection may stay open, because the end of the request is known.
    static let openConnection = Leniency(rawValue: 1)
    /// The request may succeed, because the server may repair it.
    static let success = Leniency(rawValue: 2)
    /// The server may wait for the content, because the length is a valid number.
    static let waiting = Leniency(rawValue: 4)
}
