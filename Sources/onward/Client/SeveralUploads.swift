import ResumableTransfer
import SystemCalls

/// The uploads of a command with several files.
///
/// Until it is known that the server can resume uploads, only one file is sent at a time. If the command is killed, a
/// server that cannot resume uploads has to receive the interrupted files again from their beginning.
struct SeveralUploads: TransferSequence {
    private let jobs: [(upload: TransferJob, size: Int64)]
    private var position = 0
    private let settings: ClientSettings
    private let report: TransferReport
    private let signals: SignalWatch
    private let clients: CommandClients
    private let finished: SentFilesLists
    let progress: GroupProgress

    init(
        _ jobs: [TransferJob], _ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch,
        _ clients: CommandClients, _ finished: SentFilesLists
    ) {
        self.jobs = jobs.map { ($0, (try? $0.identity.path.status().size) ?? 0) }
        self.settings = settings
        self.report = report
        self.signals = signals
        self.clients = clients
        self.finished = finished
        progress = GroupProgress(
            total: GroupProgress.Total(count: jobs.count, bytes: self.jobs.reduce(0) { $0 + $1.size }),
            now: Double(SystemClock.monotonicNanoseconds()) / 1e9)
    }

    mutating func next() async -> NextTransfer? {
        guard position < jobs.count else { return nil }
        let (job, size) = jobs[position]
        position += 1
        if let entry = finished.entry(of: job.identity.path) {
            await skip(entry, job)
            return NextTransfer.none(.done)
        }
        return .transfer(
            GroupedTransfer(
                size: size,
                canStartBesideOthers: { [clients, settings] in
                    clients.hasAnnouncedUploads(to: job.request.uri, settings)
                }
            ) { [signals, clients, finished] report, spareLock in
                await job.run(report, signals, clients, finished, reusing: spareLock)
            })
    }

    /// Reports a file that an earlier run has sent.
    private func skip(_ entry: SentFilesList.Entry, _ job: TransferJob) async {
        // If a state or a lock exists, an earlier process was killed after it had added the file to the list.
        if CommandState.exists(of: job.identity) {
            await (try? CommandState.claim(job.identity, chosen: nil))?.remove()
        }
        let report = TransferReport(report, in: progress)
        report.begin(job.identity, kept: entry.size, total: entry.size, reference: nil)
        report.completed(status: entry.status, location: entry.location, size: entry.size, skipped: .sentEarlier)
    }
}
