import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension DownloadOperation {
    func canSend(_ request: DownloadRequest) -> Bool { true }

    func message(for request: DownloadRequest) -> TransferMessage {
        let plan = driver.plan
        let uri =
            switch request.resource {
            case .target: plan.request.uri
            case .other(let uri): uri
            }
        let own = Fields(
            plan.request.fields.filter { !Fields.belongsToTransfer($0.name) }.map { ($0.name, $0.value) })
        var fields = driver.client.configuration.fields.merging(own)
        // Without the field a server may choose any coding (RFC 9110 section 12.5.3).
        if !fields.contains("Accept-Encoding") { fields.append("Accept-Encoding", "identity") }
        return TransferMessage(
            request: TransferRequest(uri, fields: fields.merging(request.fields)),
            carriesCredentials: request.carriesCredentials, hidesPath: false)
    }

    func restore(_ authorized: inout TransferRequest, for request: DownloadRequest) {
        authorized.method = .get
        for name in ["Range", "If-Range"] { authorized.fields.remove(name) }
        authorized.fields = authorized.fields.merging(request.fields)
    }

    func willSend(_ request: DownloadRequest, to uri: RequestURI) {}

    func complete(_ transport: inout TransportRequest, for request: DownloadRequest, to uri: RequestURI) {
        guard let files else { return }
        let machine = machine
        transport.receive = { head in
            switch machine.reception(of: DownloadOperation.responseHead(head, uri)) {
            case .resume(_, let end):
                files.current.resume(at: request.start, end: end)
                return .write(files.current)
            case .replace(let representation):
                do throws(Errno) {
                    try files.replace(with: representation, keepsCurrent: machine.hasBytes)
                } catch {
                    return .abort
                }
                return .write(files.current)
            case .complete, .doubtful, .redirection, .refusal, .unexpected: return .refusal
            case .unfit, .earlier, .violation: return .abort
            }
        }
    }

    private static func responseHead(_ head: TransportHead, _ uri: RequestURI) -> DownloadResponseHead {
        let locations = head.fields.values("Location")
        return DownloadResponseHead(
            status: head.status, fields: head.fields,
            location: locations.count == 1 ? uri.location(locations[0]) : nil)
    }

    // MARK: What comes back

    func interim(_ head: TransportHead, from uri: RequestURI, _ exchange: TransportExchange) -> InterimStep { .proceed }

    func handle(
        _ event: TransportEvent, of request: DownloadRequest, from uri: RequestURI, _ exchange: TransportExchange
    ) async {
        switch event {
        case .head(let head):
            await begin(machine.reception(of: DownloadOperation.responseHead(head, uri)), of: request)
        case .received:
            guard let files, files.representation != nil else { break }
            reportProgress()
            let partial = files.current
            if partial.needsSynchronization() {
                synchronization = Task { await BlockingWork.run { _ = partial.synchronize() } }
            }
            if partial.needsSpan() { await BlockingWork.run { partial.span() } }
            if partial.failure != nil { exchange.cancel() }
            await driver.keepCheckpoint()
        case .interim, .sent: break
        }
    }

    /// Content of the representation begins to arrive.
    private func begin(_ reception: DownloadReception, of request: DownloadRequest) async {
        let start: Int64
        switch reception {
        case .resume(let known, _), .complete(let known):
            files?.note(known)
            start = request.start
        case .replace: start = 0
        case .doubtful, .unfit, .earlier, .unexpected, .redirection, .refusal, .violation: return
        }
        if driver.isResuming { driver.control.events.send(.resumed(at: start)) }
        driver.isResuming = false
        await driver.keepCheckpoint()
        // It gets its name after the checkpoint was saved: a process that is killed before that leaves no file.
        if let file = files?.current, !file.isNamed, files?.representation?.validator != nil {
            await BlockingWork.run { try? file.appear() }
        }
        reportProgress()
    }

    func ended(
        _ result: TransportResult, of request: DownloadRequest, from uri: RequestURI, isAborted: Bool
    ) async throws(TransferError) {
        guard let files else { return }
        await synchronization?.value
        synchronization = nil
        let isOverrun = files.current.isOverrun
        if isOverrun { await BlockingWork.run { files.current.drop(from: request.start) } }
        report(result, files: files, isOverrun: isOverrun, from: uri)
        // A failure of the file ends the download here: to the machine it is a lost connection.
        if let failure = files.failure { throw DownloadOperation.destinationError(failure) }
        followMachine(files)
        reportProgress()
        // After the end of an exchange, time alone does not make a checkpoint due. A complete file is synchronized next.
        guard !machine.isFinished else { return }
        await BlockingWork.run { files.current.span() }
        await driver.keepCheckpoint(isDue: !driver.hasHandedOut(checkpoint))
    }

    /// Reports the end of the exchange to the machine.
    private func report(_ result: TransportResult, files: PartialFiles, isOverrun: Bool, from uri: RequestURI) {
        guard let head = result.head else {
            let failure = result.failure ?? .connectionLost(code: 0, message: "no response")
            driver.lastFailure = TransferError(failure, asking: uri)
            return machine.interrupted(DownloadInterruption(failure))
        }
        let parsed = DownloadOperation.responseHead(head, uri)
        var ending = ContentEnding.complete
        switch machine.reception(of: parsed) {
        case .resume, .replace:
            received += result.received
            driver.response = TransferResponse(status: head.status, fields: head.fields)
            if isOverrun {
                ending = .overrun
            } else if let failure = result.failure {
                driver.lastFailure = TransferError(failure, asking: uri)
                ending = .cut(DownloadInterruption(failure))
            } else {
                driver.lastFailure = nil
            }
        case .unfit, .earlier:
            driver.isResuming = true
            driver.lastFailure = nil
        case .complete, .doubtful, .redirection, .refusal, .unexpected, .violation:
            driver.response = TransferResponse(status: head.status, fields: head.fields, content: result.content)
            driver.lastFailure = nil
        }
        machine.responded(
            parsed, position: files.current.position, ending: ending, now: SystemClock.realtimeSeconds())
        if ending == .overrun { driver.isResuming = true }
    }

    func shownFields(of head: TransportHead, from uri: RequestURI) -> Fields {
        var fields = head.fields.hidingSecrets()
        // The query of a redirection is often a signature.
        let locations = head.fields.values("Location").compactMap { uri.resolving($0) }
        if let location = locations.first { fields.set("Location", location.description(hidingPath: false)) }
        return fields
    }
}
