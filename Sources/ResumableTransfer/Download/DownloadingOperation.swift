import HTTPSemantics
import ResumableUpload

/// What downloads to files and to memory have in common: their requests, and the state machine.
protocol DownloadingOperation: TransferOperation
where Outcome == ClientResponseHead, Checkpoint == DownloadCheckpoint {
    var driver: TransferDriver<Self> { get }
    var machine: DownloadMachine { get set }
}

extension DownloadingOperation {
    static var noun: String { "download" }
    var createsTicketFile: Bool { false }
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
        // A complete download is not paused any more.
        if !machine.isFinished || stop != .pause { throw stopped(by: stop) }
    }

    func next() -> ClientStep<ClientResponseHead> { machine.next() }

    var attempts: Int { machine.attempts }

    var hasOtherCredentials: Bool {
        get { machine.hasOtherCredentials }
        set { machine.hasOtherCredentials = newValue }
    }

    func follows(_ status: Status, to request: ClientRequest) -> Bool {
        machine.reception(of: ClientResponseHead(status: status, fields: Fields())) == .redirection
    }

    func declineRedirection() { machine.declineRedirection() }

    func credentialsRefreshed(isFresh: Bool) { machine.credentialsRefreshed(isFresh: isFresh) }

    /// Reports to the machine whether new credentials can be requested after a 401 response to `request`.
    func noteCredentials(for request: ClientRequest, to uri: RequestURI) {
        machine.canRefreshCredentials = driver.canRefreshCredentials(for: request, to: uri)
    }

    /// The digests that the server sent, and those that the caller passed.
    func expectedDigests(of representation: DownloadRepresentation?) -> ExpectedDigests {
        let sent = representation?.digest.flatMap { DigestField(fieldLines: [$0]) }
        return ExpectedDigests((sent?.values ?? []) + (driver.plan.request.digestField?.values ?? []))
    }

    var callerFields: Fields {
        var fields = Fields(
            driver.plan.request.fields.filter { !Fields.belongsToTransfer($0.name) }.map { ($0.name, $0.value) })
        // Without the field a server may choose any coding (RFC 9110 section 12.5.3).
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
