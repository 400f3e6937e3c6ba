import ResumableTransfer
import SystemCalls

/// The uploads of a command with several files. Small files are sent at the same time, because most of the time of a
/// small upload is spent waiting for the server.
///
/// Until it is known that the server can resume uploads, only one file is sent at a time: if the command is killed, a
/// server that cannot resume uploads has to receive the interrupted files again from their beginning. One file is also
/// sent at a time if `--limit-rate` limits the rate of each transfer, if `--verbose` shows the messages in their order,
/// or after the server has refused an upload because it accepts no more of them at the same time.
struct SimultaneousUploads {
    /// The maximum number of uploads that run at the same time.
    private static let maxCount = 16
    /// The maximum size in bytes of all files that are sent at the same time. A larger file is sent alone.
    private static let maxSize: Int64 = 16 << 20

    private struct Ended: Sendable {
        let size: Int64
        let status: ExitStatus
        let lock: StateLock?
    }

    private let jobs: [(upload: TransferJob, size: Int64)]
    private let settings: ClientSettings
    private let report: TransferReport
    private let signals: SignalWatch
    private let clients: CommandClients
    private let finished: FinishedFiles
    private let progress: GroupProgress
    private var running = 0
    private var runningSize: Int64 = 0
    /// The lock of the transfer that has ended last. The next transfer reuses it.
    private var spareLock: StateLock?
    private var result = ExitStatus.done
    /// Whether no more files are sent.
    private var isStopped = false

    init(
        _ jobs: [TransferJob], _ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch,
        _ clients: CommandClients, _ finished: FinishedFiles
    ) {
        self.jobs = jobs.map { ($0, (try? $0.identity.path.status().size) ?? 0) }
        self.settings = settings
        self.report = report
        self.signals = signals
        self.clients = clients
        self.finished = finished
        progress = GroupProgress(
            count: jobs.count, total: self.jobs.reduce(0) { $0 + $1.size },
            now: Double(SystemClock.monotonicNanoseconds()) / 1e9)
    }

    /// Sends all files.
    /// - Returns: the worst exit status.
    mutating func run() async -> ExitStatus {
        await withTaskGroup(of: Ended.self) { group in
            for (job, size) in jobs {
                if let entry = finished.entry(of: job.identity.path) {
                    await skip(entry, job)
                    continue
                }
                while running > 0, !hasRoom(for: size, job) {
                    // Releases the lock, so that another process can run the transfer that has ended while this
                    // command waits.
                    spareLock = nil
                    if let ended = await group.next() { note(ended) }
                }
                if isStopped { break }
                // A signal that arrives between two files stops no transfer, so it is checked here.
                if signals.isStopRequested, job.identity != jobs[0].upload.identity {
                    result = .worse(result, .tryAgain)
                    isStopped = true
                    break
                }
                // While another transfer is running, or is recording that its file was sent, a signal must not end the
                // process immediately.
                if running == 0 { signals.endImmediately() }
                running += 1
                runningSize += size
                let report = TransferReport(report, in: progress)
                group.addTask { [signals, clients, finished, spareLock] in
                    let (status, lock) = await job.run(report, signals, clients, finished, reusing: spareLock)
                    return Ended(size: size, status: status, lock: lock)
                }
                spareLock = nil
            }
            while let ended = await group.next() {
                note(ended)
                spareLock = nil
            }
        }
        // The reports of the paused files do not repeat this advice.
        if isStopped, signals.isStopRequested {
            report.note("Stopped. Run the same command again to send the remaining files.")
        }
        return result
    }

    private func hasRoom(for size: Int64, _ job: TransferJob) -> Bool {
        guard settings.rateLimit == nil, !settings.isVerbose, running < Self.maxCount,
            runningSize + size <= Self.maxSize, !progress.isServerFull
        else { return false }
        return clients.announcesUploads(to: job.request.uri, settings)
    }

    private mutating func note(_ ended: Ended) {
        spareLock = ended.lock
        running -= 1
        runningSize -= ended.size
        result = .worse(result, ended.status)
        // The cause of this interruption would also interrupt every other transfer, after it had been retried for the
        // same time.
        if ended.status == .tryAgain { isStopped = true }
    }

    /// Reports a file that an earlier run has sent.
    private mutating func skip(_ entry: SentFilesList.Entry, _ job: TransferJob) async {
        // If a state or a lock exists, an earlier process was killed after it had added the file to the list.
        if CommandState.exists(of: job.identity) {
            spareLock = nil
            await (try? CommandState.claim(job.identity, chosen: nil))?.remove()
        }
        let report = TransferReport(report, in: progress)
        report.begin(job.identity, kept: entry.size, total: entry.size, reference: FilePath(job.identity.name))
        report.completed(status: entry.status, location: entry.location, size: entry.size, isEarlier: true)
    }
}
