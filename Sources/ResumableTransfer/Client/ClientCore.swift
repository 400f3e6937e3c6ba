import SystemCalls

/// What the transfers of one client share.
final class ClientCore: Sendable {
    let configuration: TransferClient.Configuration
    let engine = TransportEngine()
    let storage: TransferStorage

    private struct State {
        var isShutDown = false
        var running: [ObjectIdentifier: any Transfer] = [:]
    }

    private let state = Monitor(State())

    init(_ configuration: TransferClient.Configuration) {
        self.configuration = configuration
        storage = TransferStorage(path: configuration.storageDirectory)
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
