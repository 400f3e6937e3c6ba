import HTTPSemantics
import SystemCalls
import UploadStorage

/// One check of a complete file before its publication.
struct FileCheck {
    /// The verdict, with the resource of another path.
    enum Outcome {
        case accepted
        case moved(ReceivedUpload.Resource, path: String)
        case refused(Response)
    }

    private let upload: ReceivedUpload

    init(_ upload: ReceivedUpload) { self.upload = upload }

    /// Runs the check, and reports how it ended.
    /// - Throws: `TargetUnavailable` if there is no valid verdict; another error only after a cancellation.
    func run(_ check: (ReceivedUpload) async throws -> PublicationVerdict) async throws -> Outcome {
        let begun = SystemClock.monotonicNanoseconds()
        func report(_ outcome: CheckReport.Outcome) {
            upload.check = CheckReport(outcome: outcome, nanoseconds: SystemClock.monotonicNanoseconds() - begun)
        }
        do {
            let outcome = try outcome(of: try await check(upload))
            if case .refused = outcome { report(.refused) } else { report(.accepted) }
            return outcome
        } catch {
            report(Task.isCancelled ? .canceled : .failed)
            if Task.isCancelled || error is TargetUnavailable { throw error }
            throw Self.failure("\(error)")
        }
    }

    private func outcome(of verdict: PublicationVerdict) throws(TargetUnavailable) -> Outcome {
        switch verdict {
        case .accept: return .accepted
        case .acceptAs(let path):
            // Without a slash at its end the path of a collection is that of a directory, as for files below it.
            guard let resource = upload.resource(path), resource.target.isCollection == path.hasSuffix("/") else {
                throw Self.failure("it returned the path \(path), which is not a valid path of a file on this server")
            }
            return .moved(resource, path: path)
        case .refuse(let response):
            guard response.status.isClientError else {
                throw Self.failure("it refuses the file with the status \(response.status), which is not 4xx")
            }
            return .refused(response)
        }
    }

    /// The error after which the client repeats its request.
    static func failure(_ reason: String) -> TargetUnavailable {
        TargetUnavailable("the check of the file failed: \(reason)", retryAfter: TargetUnavailable.checkPause)
    }
}

extension TargetUnavailable {
    /// The time after which a client should repeat its request if a check has failed.
    package static let checkPause: Duration = .seconds(5)
}

extension StoreError {
    /// Whether no file can have the name, because of other files and directories.
    var isAboutName: Bool {
        switch self {
        case .targetIsDirectory, .targetIsSpecial, .parentIsFile, .pathTooLong, .noFreeName: true
        default: false
        }
    }
}
