import Foundation
import SystemCalls

/// What the transfers of one client share.
final class ClientCore: Sendable {
    let configuration: TransferClient.Configuration
    let engine = TransportEngine()
    let storage: TransferStorage
    let servers = ServerTraits()

    private struct State {
        var isShutDown = false
        var running: [ObjectIdentifier: any Transfer] = [:]
    }

    private let state = Monitor(State())

    init(_ configuration: TransferClient.Configuration) {
        self.configuration = configuration
        storage = TransferStorage(path: configuration.storagePath)
    }

    deinit { engine.shutDown() }

    /// Notes a transfer that starts. False: it must not, for the client was shut down.
    func enter(_ transfer: any Transfer) -> Bool {
        state.withLock { state in
            if state.isShutDown { return false }
            state.running[ObjectIdentifier(transfer)] = transfer
            return true
        }
    }

    func leave(_ transfer: ObjectIdentifier) {
        _ = state.withLock { $0.running.removeValue(forKey: transfer) }
    }

    /// Claims a transfer: one that is resumed before anything else is done for it, a new upload before its first checkpoint
    /// is handed out.
    func claim(
        _ id: UUID, generation: Int, hasTicket: Bool, createsFile: Bool = false
    ) async throws(TransferError) -> TicketClaim? {
        guard hasTicket || configuration.issuesTickets else { return nil }
        let storage = storage
        return try await BlockingWork.run {
            Result { () throws(TransferError) in
                try storage.claim(
                    ResumeTicket(id: id, generation: generation), hasTicket: hasTicket, createsFile: createsFile)
            }
        }.get()
    }

    /// The ticket of data that is about to be issued; `nil` for data without one.
    func issueTicket(for id: UUID, generation: Int) -> ResumeTicket? {
        configuration.issuesTickets ? storage.issueTicket(for: id, generation: generation) : nil
    }

    func shutDown() async {
        let running = state.withLock { state in
            state.isShutDown = true
            return Array(state.running.values)
        }
        for transfer in running { _ = await transfer.pause() }
        let engine = engine
        await BlockingWork.run { engine.shutDown() }
    }
}
