import HTTPSemantics
import SystemCalls
import TransferServer

/// Checks each complete file with a URL or a program, for example a virus scanner, before the file is published:
///
/// ```swift
/// let check = PublicationCheck(PublicationCheckSettings(try Destination(parsing: "/usr/local/bin/scan")))
/// let handler = FilesHandler(store: store, check: check.verdict)
/// ```
public final class PublicationCheck: Sendable {
    private struct Queue {
        var running = 0
        /// The tickets of the files that wait, in their order.
        var waiting: [Int] = []
        var nextTicket = 0
    }

    /// The interval in nanoseconds at which a waiting thread tests whether its task is canceled.
    static let checkInterval: Int64 = 50_000_000

    private let settings: PublicationCheckSettings
    private let checker: any Checker
    private let queue = Monitor(Queue())

    /// Creates a check. Its destination need not be available yet.
    public init(_ settings: PublicationCheckSettings) {
        self.settings = settings
        switch settings.destination {
        case .url(let url): checker = EndpointChecker(url, timeout: settings.timeout)
        case .program(let path): checker = ProgramChecker(path: path, timeout: settings.timeout)
        }
    }

    /// Checks a file. Blocks the thread until the check has ended. If the task is canceled, the check ends.
    /// - Throws: `TargetUnavailable` if there is no verdict: the destination has failed, or has exceeded a time limit.
    ///   `CancellationError` after a cancellation.
    @Sendable public func verdict(on upload: ReceivedUpload) async throws -> PublicationVerdict {
        try check(upload)
    }

    private func check(_ upload: ReceivedUpload) throws -> PublicationVerdict {
        try awaitTurn()
        defer {
            queue.withLock { $0.running -= 1 }
            queue.notifyAll()
        }
        do throws(CheckFailure) { return try checker.verdict(on: upload) } catch {
            // After a cancellation the error is not a failure of the destination.
            if Task.isCancelled { throw CancellationError() }
            throw TargetUnavailable(
                "\(settings.destination), which checks files, \(error.reason)", retryAfter: error.retryAfter)
        }
    }

    /// Waits until fewer checks run than the maximum.
    private func awaitTurn() throws {
        let ticket = queue.withLock { queue in
            queue.nextTicket += 1
            queue.waiting.append(queue.nextTicket)
            return queue.nextTicket
        }
        let deadline = SystemClock.deadline(in: settings.timeout)
        while true {
            let now = SystemClock.monotonicNanoseconds()
            let hasBegun: Bool? = queue.wait(until: min(deadline, now + Self.checkInterval)) { queue in
                guard queue.waiting.first == ticket, queue.running < settings.maxCount else { return nil }
                queue.waiting.removeFirst()
                queue.running += 1
                return true
            }
            if hasBegun == true { return queue.notifyAll() }
            if Task.isCancelled || now >= deadline { break }
        }
        queue.withLock { $0.waiting.removeAll { $0 == ticket } }
        queue.notifyAll()
        if Task.isCancelled { throw CancellationError() }
        throw TargetUnavailable(
            "a file waited \(settings.timeout.wholeSeconds) s for its check, because at most"
                + " \(settings.maxCount) checks run at the same time (max=)",
            retryAfter: TargetUnavailable.checkPause)
    }
}

/// Checks files. Blocks its thread, and can be used on several threads.
protocol Checker: Sendable {
    func verdict(on upload: ReceivedUpload) throws(CheckFailure) -> PublicationVerdict
}

/// A check ended without a verdict, so the file has to be checked again.
struct CheckFailure: Error {
    /// The log shows this text after the destination, so it begins with a verb.
    var reason: String
    /// The time after which a client should repeat its request.
    var retryAfter: Duration

    init(_ reason: String, retryAfter: Duration? = nil) {
        self.reason = reason
        self.retryAfter = retryAfter ?? TargetUnavailable.checkPause
    }
}
