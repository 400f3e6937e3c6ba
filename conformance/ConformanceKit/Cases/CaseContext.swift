import SystemCalls

/// What a case works with: connections, expectations, and what is known about the subject. Used by one thread.
final class CaseContext {
    let subject: Subject
    /// The version that requests speak unless they say otherwise.
    let profile: Profile
    let transcript = Transcript()
    private(set) var notes: [String] = []
    /// The last request and where it went, for a command that repeats it.
    private(set) var lastRequest: (request: Request, endpoint: Endpoint)?
    /// Uploads to be canceled at the end.
    var uploads: [Upload] = []
    let observations: Observations
    /// After it no connection is opened any more.
    let deadline: Deadline

    init(subject: Subject, profile: Profile, observations: Observations) {
        self.subject = subject
        self.profile = profile
        self.observations = observations
        deadline = Deadline(in: subject.timeout * 8 + .seconds(10))
    }

    // MARK: - Wire

    func connect(to endpoint: Endpoint? = nil) throws -> RawConnection {
        guard !deadline.isOver else { throw WireFailure.timedOut("running the case: it takes too long as a whole") }
        return try RawConnection(
            endpoint ?? subject.endpoint, timeout: subject.timeout, transcript: transcript, observer: observations)
    }

    /// Sends one request on a connection of its own and reads the final response.
    func exchange(_ request: Request, at endpoint: Endpoint? = nil) throws -> Response {
        let connection = try connect(to: endpoint)
        remember(request, endpoint ?? subject.endpoint)
        let response = try connection.exchange(request)
        connection.close()
        return response
    }

    func remember(_ request: Request, _ endpoint: Endpoint) { lastRequest = (request, endpoint) }

    // MARK: - Verification

    func expect(_ condition: Bool, _ expected: @autoclosure () -> String, _ seen: @autoclosure () -> String) throws {
        if !condition { throw Unmet(expected(), seen: seen()) }
    }

    /// The value, where there is one.
    func require<Value>(
        _ value: Value?, _ expected: @autoclosure () -> String, _ seen: @autoclosure () -> String
    ) throws -> Value {
        guard let value else { throw Unmet(expected(), seen: seen()) }
        return value
    }

    func expect(_ carrier: some FieldCarrier, isOneOf statuses: [Int], _ what: String) throws {
        let list = statuses.map(String.init).joined(separator: " or ")
        try expect(statuses.contains(carrier.status), "\(list) \(what)", carrier.summary)
    }

    func expectSuccess(_ response: Response, _ what: String) throws {
        try expect(response.isSuccessful, "2xx \(what)", response.summary)
    }

    func expectRefusal(_ response: Response, _ what: String) throws {
        try expect(response.isRefusal, "4xx \(what)", response.summary)
    }

    /// Ends the case: what it is about is not offered.
    func skip(_ reason: String) -> NotOffered { NotOffered(reason) }

    /// Reports something besides the verdict.
    func note(_ text: String) { notes.append(text) }

    /// What has to work before the question can be asked.
    func setup<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let unmet as Unmet {
            throw SetupFailure(finding: unmet.finding)
        } catch let failure as WireFailure {
            throw SetupFailure(finding: Finding(expected: "a response", seen: "\(failure)"))
        }
    }
}
