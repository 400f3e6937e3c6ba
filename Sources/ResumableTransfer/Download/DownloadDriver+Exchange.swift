import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension DownloadDriver {
    /// Sends one request, lets the file take in what comes, and tells the machine how it ended.
    func perform(_ request: DownloadRequest) async throws(TransferError) {
        guard let files else { return }
        let outgoing = try await outgoingRequest(for: request)
        guard let base = RequestURI(outgoing.uri) else {
            throw TransferError(.invalidRequest, "The URI of the request is no absolute one of http or https.")
        }
        if let field = outgoing.fields.firstInvalid {
            throw TransferError(.invalidRequest, "The field \(field.name) cannot be sent.")
        }
        requests += 1
        observe(outgoing)
        let exchange = core.engine.start(
            transportRequest(for: request, outgoing, base: base, files: files))
        let result = await control.interruptible(
            by: { exchange.cancel() },
            while: {
                await follow(exchange, of: request, files: files, from: base)
                return await exchange.result()
            })
        await synchronization?.value
        synchronization = nil
        let isOverrun = files.current.isOverrun
        if isOverrun { await BlockingWork.run { files.current.drop(from: request.start) } }
        take(result, files: files, isOverrun: isOverrun, from: base)
        // What went wrong with the file is decided here: to the machine it is a cut.
        if let failure = files.failure { throw DownloadDriver.destinationError(failure) }
        followMachine(files)
        tellProgress()
        // Nothing of an exchange that is over is noted by the time alone. What is complete is synchronized next.
        guard !machine.isFinished else { return }
        await BlockingWork.run { files.current.span() }
        await keepCheckpoint(isDue: downloadRecord() != told)
    }

    private func transportRequest(
        for request: DownloadRequest, _ outgoing: TransferRequest, base: RequestURI, files: PartialFiles
    ) -> TransportRequest {
        let configuration = core.configuration
        let machine = machine
        return TransportRequest(
            method: outgoing.method.rawValue, uri: base.text, fields: outgoing.fields, content: nil, gate: nil,
            stallTimeout: configuration.stallTimeout, rateLimit: configuration.rateLimit,
            settings: TransportSettings(configuration),
            receive: { head in
                switch machine.reception(of: DownloadDriver.responseHead(head, base)) {
                case .resume(_, let end):
                    files.current.goOn(at: request.start, end: end)
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
            })
    }

    private static func responseHead(_ head: TransportHead, _ base: RequestURI) -> DownloadResponseHead {
        let locations = head.fields.values("Location")
        return DownloadResponseHead(
            status: head.status, fields: head.fields,
            location: locations.count == 1 ? base.location(locations[0]) : nil)
    }

    /// Tells what comes while the exchange goes on.
    private func follow(
        _ exchange: TransportExchange, of request: DownloadRequest, files: PartialFiles, from base: RequestURI
    ) async {
        for await event in exchange.events {
            switch event {
            case .interim(let head):
                observe(head, from: base)
                control.events.send(.informational(head.status, head.fields))
            case .head(let head):
                observe(head, from: base)
                await begin(machine.reception(of: DownloadDriver.responseHead(head, base)), of: request)
            case .sent: break
            case .received:
                guard files.representation != nil else { break }
                tellProgress()
                let partial = files.current
                if partial.needsSynchronization() {
                    synchronization = Task { await BlockingWork.run { _ = partial.synchronize() } }
                }
                if partial.needsSpan() { await BlockingWork.run { partial.span() } }
                if partial.failure != nil { exchange.cancel() }
                await keepCheckpoint()
            }
        }
    }

    /// Content of the representation begins to come.
    private func begin(_ reception: DownloadReception, of request: DownloadRequest) async {
        let start: Int64
        switch reception {
        case .resume(let known, _), .complete(let known):
            files?.note(known)
            start = request.start
        case .replace: start = 0
        case .doubtful, .unfit, .earlier, .unexpected, .redirection, .refusal, .violation: return
        }
        if isResuming { control.events.send(.resumed(at: start)) }
        isResuming = false
        await keepCheckpoint()
        // It gets its name after the checkpoint was saved: a process that is killed before that leaves no file.
        if let file = files?.current, !file.isNamed, files?.representation?.validator != nil {
            await BlockingWork.run { try? file.appear() }
        }
        tellProgress()
    }

    /// Tells the machine how the exchange ended.
    private func take(
        _ result: TransportResult, files: PartialFiles, isOverrun: Bool, from base: RequestURI
    ) {
        guard let head = result.head else {
            let failure = result.failure ?? .connectionLost(code: 0, message: "no response")
            lastFailure = TransferError(failure, asking: base)
            return machine.interrupted(DownloadInterruption(failure))
        }
        let parsed = DownloadDriver.responseHead(head, base)
        var ending = ContentEnding.whole
        switch machine.reception(of: parsed) {
        case .resume, .replace:
            received += result.received
            response = TransferResponse(status: head.status, fields: head.fields)
            if isOverrun {
                ending = .overrun
            } else if let failure = result.failure {
                lastFailure = TransferError(failure, asking: base)
                ending = .cut(DownloadInterruption(failure))
            } else {
                lastFailure = nil
            }
        case .unfit, .earlier:
            isResuming = true
            lastFailure = nil
        case .complete, .doubtful, .redirection, .refusal, .unexpected, .violation:
            response = TransferResponse(status: head.status, fields: head.fields, content: result.content)
            lastFailure = nil
        }
        machine.responded(
            parsed, position: files.current.position, ending: ending, now: SystemClock.realtimeSeconds())
        if ending == .overrun { isResuming = true }
    }

    // MARK: Requests

    private func outgoingRequest(for request: DownloadRequest) async throws(TransferError) -> TransferRequest {
        let uri =
            switch request.resource {
            case .target: plan.request.uri
            case .other(let uri): uri
            }
        let own = Fields(
            plan.request.fields.filter { !Fields.belongsToTransfer($0.name) }.map { ($0.name, $0.value) })
        var fields = core.configuration.fields.merging(own)
        // Without the field a server may choose any coding (RFC 9110 section 12.5.3).
        if !fields.contains("Accept-Encoding") { fields.append("Accept-Encoding", "identity") }
        fields = fields.merging(request.fields)
        do {
            return try await core.outgoing(
                TransferRequest(uri, fields: fields), carriesCredentials: request.carriesCredentials,
                target: plan.request.uri, control: control
            ) { authorized in
                authorized.method = .get
                for name in ["Range", "If-Range"] { authorized.fields.remove(name) }
                authorized.fields = authorized.fields.merging(request.fields)
            }
        } catch {
            throw control.stop.map { self.error(of: $0) } ?? error
        }
    }

    // MARK: The observer

    private func observe(_ outgoing: TransferRequest) {
        guard let observer = core.configuration.observer else { return }
        let shown = RequestURI(outgoing.uri)?.description(hidingPath: false) ?? ""
        observer(TransferRecord(.request(.get, uri: shown), fields: outgoing.fields.hidingSecrets()))
    }

    private func observe(_ head: TransportHead, from base: RequestURI) {
        guard let observer = core.configuration.observer else { return }
        var fields = head.fields.hidingSecrets()
        // Where a redirection leads, the query is often a signature.
        let locations = head.fields.values("Location").compactMap { base.resolving($0) }
        if let location = locations.first { fields.set("Location", location.description(hidingPath: false)) }
        observer(TransferRecord(.response(head.status, version: head.httpVersion), fields: fields))
    }
}
