import ResumableTransfer
import SystemCalls

/// The transfers of a command with several files, one after the other.
protocol TransferSequence {
    /// Returns the next transfer; `nil` at the end.
    mutating func next() async -> NextTransfer?
}

enum NextTransfer {
    case transfer(GroupedTransfer)
    /// A file that is not transferred. It has been reported.
    case none(ExitStatus)
}

/// One of several transfers of a command.
struct GroupedTransfer: Sendable {
    /// The size of the file in bytes, as far as it is known.
    let size: Int64
    /// Whether the transfer may start while others are running.
    let canStartBesideOthers: @Sendable () -> Bool
    /// Runs the transfer. The second argument is the lock of a transfer that has ended.
    let run: @Sendable (TransferReport, StateLock?) async -> (status: ExitStatus, lock: StateLock?)
}

/// Runs the transfers of a command with several files. Small files are transferred at the same time, because most of the
/// time of a small transfer is spent waiting for the server. `--jobs` sets the number of transfers instead.
///
/// One file is transferred at a time if `--limit-rate` limits the rate of each transfer, if `--verbose` shows the
/// messages in their order, or after the server has refused a transfer because it accepts no more of them at the same
/// time.
struct SimultaneousTransfers: Sendable {
    /// The maximum number of transfers that run at the same time.
    private static let maxCount = 64
    /// The maximum size in bytes of all files that are transferred at the same time. A larger file is transferred alone.
    private static let maxSize: Int64 = 16 << 20
    /// The maximum number of transfers that wait until others have ended.
    private static let maxWaiting = 32

    private typealias Reader = CheckedContinuation<Void, Never>

    private struct State {
        var running = 0
        var runningSize: Int64 = 0
        /// The next transfers, in order. A task whose transfer has ended continues with the first of them, so that most
        /// transfers need neither a task of their own nor the task that reads the sequence.
        var waiting: [GroupedTransfer] = []
        var hasStarted = false
        var result = ExitStatus.done
        /// Whether no more transfers are started.
        var isStopped = false
        /// Continues the task that reads the sequence.
        var reader: Reader?
        /// The reader continues when at most this number of transfers wait.
        var readerLimit = 0
    }

    private let settings: ClientSettings
    private let report: TransferReport
    private let signals: SignalWatch
    private let progress: GroupProgress
    private let state = Monitor(State())

    init(_ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch, _ progress: GroupProgress) {
        self.settings = settings
        self.report = report
        self.signals = signals
        self.progress = progress
    }

    /// Runs all transfers.
    /// - Returns: the exit status of the command.
    func run(_ transfers: inout some TransferSequence) async -> ExitStatus {
        await withDiscardingTaskGroup { group in
            while !state.withLock({ $0.isStopped }), let next = await transfers.next() {
                switch next {
                case .none(let status): state.withLock { note(status, &$0) }
                case .transfer(let transfer):
                    let count = state.withLock { state in
                        state.waiting.append(transfer)
                        return state.waiting.count
                    }
                    await start(in: &group, until: count < Self.maxWaiting ? count : Self.maxWaiting / 2)
                }
            }
            await start(in: &group, until: 0)
        }
        let (result, isStopped) = state.withLock { ($0.result, $0.isStopped) }
        // The reports of the files do not repeat this advice.
        if isStopped, signals.isStopRequested || progress.folder != nil {
            report.note("Stopped. Run the same command again to transfer the remaining files.")
        }
        return result
    }

    /// Starts waiting transfers, as many as can run at the same time, until at most `limit` wait.
    private func start(in group: inout DiscardingTaskGroup, until limit: Int) async {
        while true {
            while let transfer = state.withLock({ next(&$0) }) {
                group.addTask { await run(from: transfer) }
            }
            if state.withLock({ $0.isStopped || $0.waiting.count <= limit }) { return }
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    state.readerLimit = limit
                    if readerCanContinue(state) { return true }
                    state.reader = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        }
    }

    private func readerCanContinue(_ state: State) -> Bool {
        state.isStopped || state.waiting.count <= state.readerLimit
            || state.waiting.first.map { hasRoom($0, state) } == true
    }

    /// Runs a transfer, and then waiting transfers.
    private func run(from first: GroupedTransfer) async {
        var transfer = first
        // The lock of the transfer that has ended. The next one reuses it.
        var spareLock: StateLock?
        while true {
            let (status, lock) = await transfer.run(TransferReport(report, in: progress), spareLock)
            spareLock = lock
            let (following, reader) = state.withLock { state in
                state.running -= 1
                state.runningSize -= transfer.size
                note(status, &state)
                let following = next(&state)
                guard state.reader != nil, readerCanContinue(state) else { return (following, nil as Reader?) }
                defer { state.reader = nil }
                return (following, state.reader)
            }
            reader?.resume()
            guard let following else { return }
            transfer = following
        }
    }

    /// Removes the next transfer, and counts it as running; `nil` if none can start now.
    private func next(_ state: inout State) -> GroupedTransfer? {
        guard !state.isStopped, let transfer = state.waiting.first, hasRoom(transfer, state) else { return nil }
        // A signal that arrives between two files stops no transfer, so it is checked here.
        if signals.isStopRequested, state.hasStarted {
            note(.tryAgain, &state)
            return nil
        }
        state.hasStarted = true
        state.waiting.removeFirst()
        // While another transfer is running, or is recording that its file was sent, a signal must not end the process
        // immediately.
        if state.running == 0 { signals.endImmediately() }
        state.running += 1
        state.runningSize += transfer.size
        return transfer
    }

    private func hasRoom(_ transfer: GroupedTransfer, _ state: State) -> Bool {
        if state.running == 0 { return true }
        guard !progress.isServerFull else { return false }
        if let jobs = settings.jobs { return state.running < jobs }
        return settings.rateLimit == nil && !settings.isVerbose && state.running < Self.maxCount
            && state.runningSize + transfer.size <= Self.maxSize && transfer.canStartBesideOthers()
    }

    private func note(_ status: ExitStatus, _ state: inout State) {
        state.result = progress.folder == nil ? .worse(state.result, status) : .worst(state.result, status)
        // The cause of this interruption would also interrupt every other transfer, after it had been retried for the
        // same time.
        if status == .tryAgain { state.isStopped = true }
    }
}
