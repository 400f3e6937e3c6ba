import SystemCalls

/// The context in which a case runs: it opens connections, checks expectations, and has the properties of the subject.
/// One thread uses it.
final class CaseContext {
    let subject: Subject
    /// The version of requests for which no other version is given.
    let profile: Profile
    let transcript = Transcript()
    private(set) var notes: [String] = []
    /// The last request and its endpoint, for a command that repeats it.
    private(set) var lastRequest: (request: Request, endpoint: Endpoint)?
    /// Uploads to cancel when the case has ended.
    var uploads: [Upload] = []
    let observations: Observations
    /// The time after which the case opens no more connections.
    let deadline: Deadline

    init(subject: Subject, profile: Profile, observations: Observations) {
        self.subject = subject
        self.profile = profile
        self.observations = observations
        deadline = Deadline(in: subject.timeout * 8 + .seconds(10))
    }

    // MARK: - Wire

    func connect(to endpoint: Endpoint? = nil) throws -> RawConnection {
        guard !deadline.isOver else { throw WireFailure.timedOut("running the case, which exceeded its time limit") }
        return try RawConnection(
            endpoint ?? subject.endpoint, timeout: subject.timeout, transcript: transcript, observer: observations)
    }

    /// Sends one request on a new connection and reads the final response.
    func exchange(_ request: Request, at endpoint: Endpoint? = nil) throws -> Response {
        let connection = try connect(to: endpoint)
        setLastRequest(request, endpoint ?? subject.endpoint)
        let response = try connection.exchange(request)
        connection.close()
        return response
    }

    func setLastRequest(_ request: Request, _ endpoint: Endpoint) { lastRequest = (request, endpoint) }

    // MARK: - Verification

    func expect(_ condition: Bool, _ expected: @autoclosure () -> String, _ seen: @autoclosure () -> String) throws {
        if !condition { throw Unmet(expected(), seen: seen()) }
    }

    /// Returns a value that must not be `nil`.
    /// - Throws: ``Unmet`` if the value is `nil`.
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

    /// Returns the error that ends a case because the subject does not offer the feature that the case tests.
    func skip(_ reason: String) -> NotOffered { NotOffered(reason) }

    /// Adds a note to the report of the case.
    func note(_ text: String) { notes.append(text) }

    /// Runs the preparation of a case.
    /// - Throws: ``SetupFailure`` in place of ``Unmet`` and ``WireFailure``.
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
