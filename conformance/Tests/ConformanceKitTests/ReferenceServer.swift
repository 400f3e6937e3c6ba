import SystemCalls
import TestSupport

@testable import ConformanceKit

/// A small server that implements all versions of the draft, and is correct unless it has a defect.
///
/// Creations are sent to `/files/`; Location is the URL of a finished file. The state in memory survives ``kill()``.
final class ReferenceServer: SubjectControl, Sendable {
    struct State {
        var uploads: [String: ReferenceUpload] = [:]
        var files: [String: [UInt8]] = [:]
        var listener: LoopbackListener?
        var count = 0
    }

    let defect: Defect?
    let allowedBehavior: AllowedServerBehavior?
    let limits: [(String, Int64)]
    /// The maximum size of one upload.
    let diskSize: Int64?
    let state: Monitor<State>

    init(
        _ defect: Defect? = nil, limits: [(String, Int64)] = [("max-size", 100_000_000), ("max-age", 1000)],
        diskSize: Int64? = nil, with allowedBehavior: AllowedServerBehavior? = nil
    ) throws {
        self.defect = defect
        self.allowedBehavior = allowedBehavior
        self.diskSize = diskSize
        self.limits = limits
        state = Monitor(State())
        let listener = try LoopbackListener("reference") { [weak self] connection, _ in
            if let self { ReferenceSession(self, connection).run() }
        }
        state.withLock { $0.listener = listener }
    }

    deinit { try? kill() }

    func has(_ defect: Defect) -> Bool { self.defect == defect }
    func uses(_ allowedBehavior: AllowedServerBehavior) -> Bool { self.allowedBehavior == allowedBehavior }

    var port: UInt16 { state.withLock { $0.listener?.port ?? 0 } }
    var url: String { "http://127.0.0.1:\(port)/files/" }

    // MARK: - Life

    func start() throws { try state.withLock { $0.listener }?.start() }

    func kill() throws {
        let listener = state.withLock { state in
            for id in state.uploads.keys { state.uploads[id]?.crash(server: self) }
            if has(.forgetsAfterRestart) { state.uploads = [:] }
            return state.listener
        }
        listener?.stop()
    }
}
