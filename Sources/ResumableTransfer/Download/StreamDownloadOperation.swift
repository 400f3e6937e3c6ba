import HTTPTransport
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The operation of a download to memory. Bytes that the caller has cannot be replaced, so the download ends if the
/// representation changes after bytes were delivered.
final class StreamDownloadOperation: DownloadOperation {
    typealias Success = TransferResponse
    typealias Input = ContentBuffer

    unowned let driver: TransferDriver<StreamDownloadOperation>
    var machine: DownloadMachine

    private var buffer: ContentBuffer { driver.plan.input }

    static func total(of plan: TransferPlan<StreamDownloadOperation>) -> Int64? { nil }

    init(driver: TransferDriver<StreamDownloadOperation>) {
        self.driver = driver
        machine = DownloadMachine(
            shouldKeepEarlier: false, retry: driver.client.configuration.retry, random: { Double.random(in: 0..<1) })
    }

    func prepare() async throws(TransferError) -> TransferResponse? {
        try checkRequest()
        return nil
    }

    // MARK: One exchange

    func canSend(_ request: ClientRequest) async -> Bool {
        // The request is sent only when the buffer has room. Otherwise the server would keep the connection open and
        // wait until the caller reads bytes.
        await driver.control.wait { buffer.isReady(orCall: $0) }
    }

    func willSend(_ request: ClientRequest, to uri: RequestURI) {
        driver.progress.note(transferred: buffer.position)
    }

    func complete(_ transport: inout TransportRequest, for request: ClientRequest) {
        let buffer = buffer
        let machine = machine
        let caller = driver.plan.request
        transport.receive = { head in
            let canReceive: Bool
            switch machine.reception(of: head) {
            case .resume(let known, let end):
                canReceive = buffer.begin(at: machine.start, end: end, total: known.total)
            case .replace(let new):
                if machine.hasBytes, machine.representation?.hasSameValidator(as: new) == true {
                    canReceive = buffer.begin(at: 0, end: nil, total: new.total)
                } else {
                    canReceive = buffer.replace(total: new.total, digests: ExpectedDigests(of: new, and: caller))
                }
            case .complete, .doubtful, .redirection, .refusal, .unexpected: return .refusal
            case .inconsistent, .earlier, .violation: return .abort
            }
            return canReceive ? .write(buffer) : .abort
        }
    }

    func handle(_ event: TransportEvent, of request: ClientRequest, _ exchange: TransportExchange) async {
        switch event {
        case .head(let head):
            switch machine.reception(of: head) {
            case .resume(let known, _): begin(known, at: machine.start)
            case .replace(let known): begin(known, at: 0)
            default: break
            }
        case .received: reportProgress()
        case .interim, .sent: break
        }
    }

    private func begin(_ representation: DownloadRepresentation, at position: Int64) {
        total = representation.total
        // `buffer.position` may be larger than `position` here, because bytes of this response may have arrived.
        if driver.isResuming { driver.reportResumption(at: position) }
        driver.isResuming = false
    }

    func ended(
        _ result: TransportResult, of request: ClientRequest, from uri: RequestURI, isAborted: Bool
    ) async throws(TransferError) {
        reportProgress()
        if let failure = buffer.failure { throw error(of: failure) }
        guard let head = head(of: result, from: uri) else { return }
        var ending = noteResponse(head, of: result, from: uri)
        if ending == .complete, !buffer.isCaughtUp { ending = .cut(.truncated) }
        machine.responded(
            head, position: buffer.position, ending: ending ?? .complete, now: SystemClock.realtimeSeconds())
    }

    private func error(of failure: ContentBuffer.Failure) -> TransferError {
        switch failure {
        case .tooLarge: TransferError(.tooLarge, "The content is larger than the caller accepts.")
        case .hasChanged:
            TransferError(
                .sourceChanged,
                "The server sent other content, or content without a validator, after the caller had received a part.")
        case .overrun: TransferError(.protocolViolation, "The response is longer than its head stated.")
        }
    }

    // MARK: The end

    func finish(_ head: ClientResponseHead) async throws(TransferError) -> TransferResponse {
        guard buffer.hasExpectedDigests else {
            throw TransferError(.digestMismatch, "The received bytes do not match their digest.")
        }
        total = buffer.position
        reportProgress()
        driver.progress.finish()
        buffer.end(.success(()))
        return TransferResponse(head)
    }

    private var total: Int64?
    private var reportedPosition: Int64?

    private func reportProgress() {
        let position = buffer.position
        guard position != reportedPosition else { return }
        reportedPosition = position
        driver.progress.note(transferred: position)
        driver.progress.update(completed: position, total: total)
        driver.control.events.send(.received(position, total: total))
    }

    var checkpoint: DownloadCheckpoint? { nil }

    func conclude(_ error: TransferError) async -> TransferConclusion<DownloadCheckpoint> {
        buffer.end(.failure(error))
        return .nothing
    }

    func close() {}
}
