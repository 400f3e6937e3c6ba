import Foundation
import HTTPSemantics
import SystemCalls

@testable import ConformanceKit

/// The response type of ConformanceKit. HTTPSemantics has another type with the same name.
typealias Response = ConformanceKit.Response

/// A small client of the draft, which is correct unless it has a defect.
final class ReferenceClient: Candidate {
    private let defect: ClientDefect?
    let allowedBehavior: AllowedClientBehavior?

    init(_ defect: ClientDefect? = nil, _ allowedBehavior: AllowedClientBehavior? = nil) {
        self.defect = defect
        self.allowedBehavior = allowedBehavior
    }

    func has(_ defect: ClientDefect) -> Bool { self.defect == defect }

    func perform(_ task: CandidateTask) throws -> CandidateEnding {
        guard let target = Endpoint(task.url) else { return .exited(64) }
        do {
            switch task.direction {
            case .upload: try ReferenceUploading(self, task, target).run()
            case .download: try ReferenceDownloading(self, task, target).run()
            }
            return .exited(0)
        } catch let stop as ReferenceFailure {
            switch stop {
            case .failed: return .exited(1)
            case .interrupted: return .exited(75)
            case .killed: return .killed
            case .timedOut: return .timedOut
            }
        }
    }
}

/// The reason why the reference client fails.
enum ReferenceFailure: Error {
    case failed
    case interrupted
    case killed
    case timedOut
}

/// The common part of uploads and downloads.
class ReferenceTransfer {
    static let tries = 6
    static let timeout = Duration.seconds(4)

    let client: ReferenceClient
    let task: CandidateTask
    let target: Endpoint
    private(set) var failures = 0

    init(_ client: ReferenceClient, _ task: CandidateTask, _ target: Endpoint) {
        self.client = client
        self.task = task
        self.target = target
    }

    func connect(_ endpoint: Endpoint) throws -> RawConnection {
        try checkTime()
        return try RawConnection(
            endpoint, timeout: Self.timeout, transcript: Transcript(), observer: Unobserved.shared)
    }

    /// Returns the credentials if the endpoint has the origin of the command's URL.
    func credentials(for endpoint: Endpoint) -> [(String, String)] {
        let leak: ClientDefect = task.direction == .upload ? .sendsCredentialsElsewhere : .leaksOnDownload
        let isOwn = endpoint.authority == target.authority
        return isOwn || client.has(leak) ? [("Authorization", "Bearer reference")] : []
    }

    /// Records a failed attempt, and waits before the next attempt.
    func waitForNextAttempt(after seconds: Int64? = nil) throws {
        failures += 1
        try checkTime()
        let continues = [.retriesForEver, .neverStops, .retriesDownloadForEver].contains(where: client.has)
        guard failures < Self.tries || continues else { throw ReferenceFailure.failed }
        Deadline.pause(.milliseconds((client.has(.ignoresRetryAfter) ? nil : seconds).map { $0 * 1000 } ?? 10))
    }

    func progress() { failures = 0 }

    private func checkTime() throws {
        if task.shouldKill() { throw ReferenceFailure.killed }
        if task.deadline.isOver { throw ReferenceFailure.timedOut }
    }
}
