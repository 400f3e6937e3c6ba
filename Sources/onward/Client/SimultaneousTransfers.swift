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
struct SimultaneousTransfers {
    /// The maximum number of transfers that run at the same time.
    private static let maxCount = 16
    /// The maximum size in bytes of all files that are transferred at the same time. A larger file is transferred alone.
    private static let maxSize: Int64 = 16 << 20

    private struct Ended: Sendable {
        let size: Int64
        let status: ExitStatus
        let lock: StateLock?
    }

    private let settings: ClientSettings
    private let report: TransferReport
    private let signals: SignalWatch
    private let progress: GroupProgress
    private var running = 0
    private var runningSize: Int64 = 0
    /// The lock of the transfer that has ended last. The next transfer reuses it.
    private var spareLock: StateLock?
    private var result = ExitStatus.done
    /// Whether no more files are transferred.
    private var isStopped = false

    init(_ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch, _ progress: GroupProgress) {
        self.settings = settings
        self.report = report
        self.signals = signals
        self.progress = progress
    }

    /// Runs all transfers.
    /// - Returns: the exit status of the command.
    mutating func run(_ transfers: inout some TransferSequence) async -> ExitStatus {
        await withTaskGroup(of: Ended.self) { group in
            var isFirst = true
            while !isStopped, let next = await transfers.next() {
                guard case .transfer(let transfer) = next else {
                    if case .none(let status) = next { note(status) }
                    continue
                }
                while running > 0, !hasRoom(for: transfer) {
                    // Releases the lock, so that another process can run the transfer that has ended while this
                    // command waits.
                    spareLock = nil
                    if let ended = await group.next() { note(ended) }
                }
                if isStopped { break }
                // A signal that arrives between two files stops no transfer, so it is checked here.
                if signals.isStopRequested, !isFirst {
                    note(.tryAgain)
                    break
                }
                isFirst = false
                // While another transfer is running, or is recording that its file was sent, a signal must not end the
                // process immediately.
                if running == 0 { signals.endImmediately() }
                running += 1
                runningSize += transfer.size
                let report = TransferReport(report, in: progress)
                group.addTask { [spareLock] in
                    let (status, lock) = await transfer.run(report, spareLock)
                    return Ended(size: transfer.size, status: status, lock: lock)
                }
                spareLock = nil
            }
            while let ended = await group.next() {
                note(ended)
                spareLock = nil
            }
        }
        // The reports of the files do not repeat this advice.
        if isStopped, signals.isStopRequested || progress.folder != nil {
            report.note("Stopped. Run the same command again to transfer the remaining files.")
        }
        return result
    }

    private func hasRoom(for transfer: GroupedTransfer) -> Bool {
        guard !progress.isServerFull else { return false }
        if let jobs = settings.jobs { return running < jobs }
        return settings.rateLimit == nil && !settings.isVerbose && running < Self.maxCount
            && runningSize + transfer.size <= Self.maxSize && transfer.canStartBesideOthers()
    }

    private mutating func note(_ ended: Ended) {
        spareLock = ended.lock
        running -= 1
        runningSize -= ended.size
        note(ended.status)
    }

    private mutating func note(_ status: ExitStatus) {
        result = progress.folder == nil ? .worse(result, status) : .worst(result, status)
        // The cause of this interruption would also interrupt every other transfer, after it had been retried for the
        // same time.
        if status == .tryAgain { isStopped = true }
    }
}
