import HTTPTransport
import HTTPSemantics
import ResumableUpload

/// An operation that downloads to a file or to memory. It has the code that both share: it creates the requests and
/// passes the responses to the state machine.
protocol DownloadOperation: TransferOperation
where Machine == DownloadMachine, Checkpoint == DownloadCheckpoint {
    var driver: TransferDriver<Self> { get }
}

extension DownloadOperation {
    static var noun: String { "download" }
    var isDeleting: Bool { false }
    var sentPosition: Int64? { nil }

    /// - Throws: `invalidRequest`.
    func checkRequest() throws(TransferError) {
        let request = driver.plan.request
        guard request.method == .get else {
            throw TransferError(.invalidRequest, "The method of a download must be GET.")
        }
        let fields = driver.client.configuration.fields.merging(request.fields)
        for name in ["Range", "If-Range"] where fields.contains(name) {
            throw TransferError(.invalidRequest, "The field \(name) is not allowed: a download sets it itself.")
        }
    }

    func handle(_ stop: StopRequest) throws(TransferError) {
        // A download that is complete cannot be paused.
        if !machine.isFinished || stop != .pause { throw stopped(by: stop) }
    }

    /// Returns the head of the final response. If there is none, reports the interruption to the machine and returns
    /// `nil`.
    func head(of result: TransportResult, from uri: RequestURI) -> ClientResponseHead? {
        if let head = result.head { return head }
        let failure = result.failure ?? .connectionLost(code: 0, message: "no response")
        driver.lastFailure = TransferError(failure, requestURI: uri)
        machine.interrupted(failure.interruption)
        return nil
    }

    /// Stores the response, so that a later error can contain it.
    /// - Returns: the end of its content; `nil` if its content is not a part of the representation.
    func noteResponse(
        _ head: ClientResponseHead, of result: TransportResult, from uri: RequestURI
    ) -> ContentEnding? {
        driver.lastFailure = nil
        switch machine.reception(of: head) {
        case .resume, .replace:
            driver.response = TransferResponse(head)
            guard let failure = result.failure else { return .complete }
            driver.lastFailure = TransferError(failure, requestURI: uri)
            return .cut(failure.interruption)
        case .inconsistent, .earlier: driver.isResuming = true
        case .complete, .doubtful, .redirection, .refusal, .unexpected, .violation:
            driver.response = TransferResponse(head, content: result.content)
        }
        return nil
    }

    var callerFields: Fields {
        var fields = Fields(
            driver.plan.request.fields.filter { !Fields.belongsToTransfer($0.name) }.map { ($0.name, $0.value) })
        // Without Accept-Encoding a server may choose any coding (RFC 9110 section 12.5.3).
        if !driver.client.configuration.fields.merging(fields).contains("Accept-Encoding") {
            fields.append("Accept-Encoding", "identity")
        }
        return fields
    }

    func restore(_ authorized: inout TransferRequest, for request: ClientRequest) {
        authorized.method = .get
        for name in ["Range", "If-Range"] { authorized.fields.remove(name) }
        authorized.fields = authorized.fields.merging(request.fields)
    }

    func interim(_ head: ClientResponseHead, _ exchange: TransportExchange) -> InterimReaction { .proceed }

    func shownFields(of head: ClientResponseHead, from uri: RequestURI) -> Fields {
        var fields = head.fields.hidingSecrets()
        // The query of a redirection is often a signature.
        let locations = head.fields.values("Location").compactMap { uri.resolving($0) }
        if let location = locations.first { fields.set("Location", location.description(hidingPath: false)) }
        return fields
    }
}
