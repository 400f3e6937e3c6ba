import SystemCalls

/// Threads for work that blocks.
final class BlockingExecutor: TaskExecutor {
    static let threads = 4
    static let shared = BlockingExecutor(threads: threads)

    private let jobs = Monitor<[UnownedJob]>([])

    init(threads: Int) {
        for number in 0..<threads {
            // If no thread could be started, the test run would wait forever.
            do {
                _ = try WorkerThread(name: "blocking-\(number)") { [jobs] in
                    while true {
                        let job = jobs.waitForever { $0.isEmpty ? nil : $0.removeFirst() }
                        job.runSynchronously(on: Self.shared.asUnownedTaskExecutor())
                    }
                }
            } catch {
                preconditionFailure("no thread: \(error)")
            }
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        jobs.notifyAll()
    }
}
