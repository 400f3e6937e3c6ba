import HTTPTransport
import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension FileDownloadOperation {
    func canSend(_ request: ClientRequest) async -> Bool { true }

    func willSend(_ request: ClientRequest, to uri: RequestURI) {
        // The rate includes the time before the first byte.
        driver.progress.note(transferred: received)
    }

    func complete(_ transport: inout TransportRequest, for request: ClientRequest) {
        guard let files else { return }
        let machine = machine
        transport.receive = { head in
            switch machine.reception(of: head) {
            case .resume(_, let end):
                files.current.resume(at: machine.start, end: end)
                return .write(files.current)
            case .replace(let representation):
                do throws(Errno) {
                    try files.replace(with: representation, shouldKeepCurrent: machine.hasBytes)
                } catch {
                    return .abort
                }
                return .write(files.current)
            case .complete, .doubtful, .redirection, .refusal, .unexpected: return .refusal
            case .inconsistent, .earlier, .violation: return .abort
            }
        }
    }

    // MARK: Responses

    func handle(
        _ event: TransportEvent, of request: ClientRequest, _ exchange: TransportExchange
    ) async {
        switch event {
        case .head(let head):
            await begin(machine.reception(of: head))
        case .received(let count):
            guard let files, files.representation != nil else { break }
            driver.progress.note(transferred: received + count)
            reportProgress()
            let partial = files.current
            if partial.needsSynchronization() {
                synchronization = Task { [synchronization] in
                    await synchronization?.value
                    // Bytes that have arrived meanwhile are written at once, so that the disk is not idle until the next
                    // event.
                    await BlockingWork.run {
                        repeat { partial.synchronize() } while partial.needsSynchronization()
                    }
                }
            }
            if partial.needsSpanUpdate() { await BlockingWork.run { partial.updateSpan() } }
            if partial.failure != nil { exchange.cancel() }
            await driver.keepCheckpoint()
        case .interim, .sent: break
        }
    }

    /// Handles the head of a response: reports the position, and saves a checkpoint.
    private func begin(_ reception: DownloadReception) async {
        let start: Int64
        switch reception {
        case .resume(let known, _), .complete(let known):
            files?.setRepresentation(known)
            start = machine.start
        case .replace: start = 0
        case .doubtful, .inconsistent, .earlier, .unexpected, .redirection, .refusal, .violation: return
        }
        if driver.isResuming { driver.reportResumption(at: start) }
        driver.isResuming = false
        await driver.keepCheckpoint()
        // The file gets its name after the checkpoint was saved: a process that is killed before that leaves no file.
        if let file = files?.current, !file.isNamed, files?.representation?.validator != nil {
            await BlockingWork.run { try? file.linkName() }
        }
        reportProgress()
    }

    func ended(
        _ result: TransportResult, of request: ClientRequest, from uri: RequestURI, isAborted: Bool
    ) async throws(TransferError) {
        guard let files else { return }
        await synchronization?.value
        synchronization = nil
        let isOverrun = files.current.isOverrun
        let start = machine.start
        await BlockingWork.run {
            files.current.flush()
            if isOverrun { files.current.drop(from: start) }
        }
        report(result, files: files, isOverrun: isOverrun, from: uri)
        // A failure of the file ends the download here, because the machine would treat it as a lost connection.
        if let failure = files.failure {
            throw FileDownloadOperation.destinationError(failure, of: driver.plan.input)
        }
        selectCurrentFile(files)
        reportProgress()
        // A complete file is synchronized next. For any other file the checkpoint is saved, unless that was done.
        guard !machine.isFinished else { return }
        await BlockingWork.run { files.current.updateSpan() }
        await driver.keepCheckpoint(isDue: !driver.isLastSaved(checkpoint))
    }

    /// Counts the received content, and reports the response to the machine.
    private func report(_ result: TransportResult, files: PartialFiles, isOverrun: Bool, from uri: RequestURI) {
        guard let head = head(of: result, from: uri) else { return }
        let ending = noteResponse(head, of: result, from: uri)
        // Content that is not a part of the representation (`nil`) is not counted.
        if ending != nil {
            received += result.received
            driver.progress.note(transferred: received)
        }
        machine.responded(
            head, position: files.current.position, ending: isOverrun ? .overrun : ending ?? .complete,
            now: SystemClock.realtimeSeconds())
        if isOverrun { driver.isResuming = true }
    }
}
