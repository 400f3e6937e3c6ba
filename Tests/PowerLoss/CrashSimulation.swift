import Glibc
import SystemCalls
import TestSupport
import UploadStorage

/// Runs one script and simulates a power loss at many points of the run.
struct CrashSimulation {
    struct Failure {
        var script: [Action]
        var problems: [String]
        /// The last events before the crash, followed by those of the interrupted recoveries.
        var events: [DiskEvent]
    }

    let seed: UInt64
    /// A directory that only this simulation uses.
    let place: String
    private var generator: SeededGenerator
    private(set) var crashes = 0
    /// The number of synchronizations of several uploads together.
    private(set) var commonSynchronizations = 0

    init(seed: UInt64, place: String) {
        self.seed = seed
        self.place = place
        generator = SeededGenerator(seed: seed ^ 0xC0FFEE)
    }

    /// - Parameter count: the number of crashes to simulate.
    mutating func run(_ script: [Action], crashes count: Int) throws -> Failure? {
        let root = place + "/run"
        let history = History(seed: seed, root: root + "/data")
        let events = try Self.recording(DiskImage(), at: root) { () throws(StoreError) in try history.run(script) }
        commonSynchronizations = events.count { if case .synchronizeAll = $0 { true } else { false } }
        var points = (0..<count).map { _ in Int.random(in: 0...events.count, using: &generator) }.sorted()
        points.append(events.count)
        var disk = Disk(DiskImage())
        var done = 0
        for point in points {
            while done < point {
                disk.apply(events[done])
                done += 1
            }
            crashes += 1
            if let failure = try verify(disk.afterCrash(using: &generator), history, at: point) {
                return Failure(
                    script: script, problems: failure.problems,
                    events: events[max(0, point - 25)..<point] + failure.events)
            }
        }
        return nil
    }

    private mutating func verify(
        _ image: DiskImage, _ history: History, at point: Int
    ) throws -> (problems: [String], events: [DiskEvent])? {
        var image = image
        var recovery: [DiskEvent] = []
        // A power loss may interrupt the recovery, too, more than once.
        while Int.random(in: 0..<3, using: &generator) == 0 {
            let root = place + "/recovery"
            let now = Expectation(history, at: point).now
            let events = try Self.recording(image, at: root) { () throws(StoreError) in
                let store = try UploadStore.open(
                    root: root + "/data", configuration: History.configuration { now })
                _ = store.sweep()
                store.close()
            }
            let end = Int.random(in: 0...events.count, using: &generator)
            var disk = Disk(image)
            for event in events[..<end] { disk.apply(event) }
            recovery += events[..<end]
            image = disk.afterCrash(using: &generator)
        }
        let root = place + "/after"
        var check = RecoveryCheck(history, at: point, root: root + "/data")
        _ = try Self.recording(image, at: root) { () throws(StoreError) in check.run() }
        return check.problems.isEmpty ? nil : (check.problems, recovery)
    }

    /// Runs `body` on a directory with the content of `image` and returns the events. The directory is removed
    /// afterwards.
    ///
    /// Throws if an event was missed: the recorded events must result in the final content of the directory.
    private static func recording(
        _ image: DiskImage, at root: String, _ body: () throws(StoreError) -> Void
    ) throws -> [DiskEvent] {
        try image.write(to: root)
        defer { try? Directory.remove(root) }
        recorder.begin(root: root, image: image)
        do { try body() } catch {
            _ = recorder.end()
            throw error
        }
        let events = recorder.end()
        var disk = Disk(image)
        for event in events { disk.apply(event) }
        let noted = disk.complete
        for (path, content) in try Directory.contents(root) where !path.hasSuffix("-shm") {
            guard case .file(let number) = noted.nodes[path], noted.files[number]?.content == content else {
                throw OverlookedChange(path: path)
            }
        }
        return events
    }
}

/// The recorder has missed a system call.
struct OverlookedChange: Error {
    let path: String
}
