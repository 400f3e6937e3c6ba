import ConformanceKit
import Foundation
import Glibc
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

/// Kills a program that uses a transfer store, at one of its operations on files, and runs it again. The program is in
/// StoreHistory.swift.
@Suite(
    "Client: a program with a store is killed", .blocking(limit: .seconds(60 * 60)),
    .enabled(if: FileOperations.isPossible, "needs a compiler for C"))
struct StoreCrashTests {
    private static let bytes = Payload.bytes(100_000)
    /// The entries whose transfers the program completes.
    private static let kept: Set<String> = ["up", "down"]
    /// The entries that the program removes before it ends.
    private static let removed: Set<String> = ["discarded", "canceled", "old"]
    /// Files that do not belong to the store, or to a transfer of it.
    private static let others = [
        "store/notes.txt", "store/several-1.done", "store/.x.lock", "storage/mine.part", "storage/notes.ticket",
        "files/.down.bin.part", "files/.down.bin.tmp",
    ]

    /// The directories of the program.
    private struct Place {
        let parent: TemporaryDirectory
        let directory: String
        let url: String
        let operations: FileOperations

        /// - Parameter name: unique for each place, because the names of its uploads on the server begin with it.
        init(_ name: String, _ url: String) throws {
            parent = try TemporaryDirectory()
            directory = parent.path + "/" + name
            self.url = url
            operations = try FileOperations(below: directory, log: parent.path + "/operations")
            for folder in ["", "/store", "/storage", "/files"] { mkdir(directory + folder, 0o700) }
            for name in StoreCrashTests.others { _ = try parent.file(path(name), Array(name.utf8)) }
            _ = try parent.file(path("files/up.bin"), StoreCrashTests.bytes)
        }

        private func path(_ name: String) -> String { directory.dropFirst(parent.path.count + 1) + "/" + name }

        func run(killAt number: Int? = nil) throws -> (ending: ChildProcess.Ending, errors: String) {
            let process = try ChildProcess(
                try ExecutableLocation.beside("TransferRecipes"), ["store-history", directory, url],
                environment: operations.environment(killAt: number))
            return (try process.awaitEnding(), process.errorOutput)
        }

        /// The last complete line of the journal about each entry.
        func acknowledged() -> [String: [String]] {
            let text = FileManager.default.contents(atPath: directory + "/journal") ?? Data()
            let lines = String(decoding: text, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            return Dictionary(
                lines.dropLast().map { $0.split(separator: " ").map(String.init) }.map { ($0[1], $0) },
                uniquingKeysWith: { $1 })
        }

        func entries() throws -> [TransferStore.Entry] {
            try PrivateDirectory.create(FilePath(directory + "/store")).entries()
        }

        func content(_ name: String) -> [UInt8]? {
            FileManager.default.contents(atPath: directory + "/" + name).map { [UInt8]($0) }
        }

        /// The names of all files.
        func names() -> Set<String> {
            Set(
                ["store", "storage", "files"].flatMap { folder in
                    ((try? FileManager.default.contentsOfDirectory(atPath: directory + "/" + folder)) ?? [])
                        .map { folder + "/" + $0 }
                })
        }

        /// Whether the transfer of this entry is complete.
        func isFinished(_ name: String, _ server: ServerProcess) -> Bool {
            let content =
                name == "up"
                ? server.published(FilePath(directory).lastComponent.repairedText + "-up") : content("files/down.bin")
            return content == StoreCrashTests.bytes
        }
    }

    /// Expects that nothing which was acknowledged is lost.
    private func check(_ place: Place, _ server: ServerProcess, _ moment: String) throws {
        let entries = Dictionary(uniqueKeysWithValues: try place.entries().map { ($0.name, $0) })
        for (name, entry) in entries {
            #expect(entry.damage == nil && !entry.isRunning, "\(moment): \(name) \(String(describing: entry.damage))")
            #expect(Self.kept.union(Self.removed).contains(name), "\(moment)")
        }
        for (name, words) in place.acknowledged() {
            let entry = entries[name]
            if words[0] == "saved" {
                // The end of the transfer may not be in the journal.
                let isEnded = entry == nil && (Self.removed.contains(name) || place.isFinished(name, server))
                let position = try #require(Int64(words[2]))
                #expect(isEnded || (entry?.position ?? -1) >= position, "\(moment): \(words) is lost")
            } else {
                #expect(entry == nil, "\(moment): \(name) is listed after \(words)")
                #expect(!Self.kept.contains(name) || place.isFinished(name, server), "\(moment): \(words)")
            }
        }
        checkOthers(place, moment)
    }

    private func checkOthers(_ place: Place, _ moment: String) {
        for name in Self.others {
            #expect(place.content(name) == Array(name.utf8), "\(moment): \(name) was changed")
        }
        #expect(place.content("files/up.bin") == Self.bytes, "\(moment)")
    }

    /// Expects that all transfers have ended, and that nothing is left of them.
    private func checkEnd(_ place: Place, _ server: ServerProcess, _ moment: String) throws {
        #expect(place.acknowledged().values.allSatisfy { ["done", "removed"].contains($0[0]) }, "\(moment)")
        for name in Self.kept { #expect(place.isFinished(name, server), "\(moment): \(name)") }
        // A download that was complete before it was paused belongs to the program.
        let isOldComplete = place.content("files/old.bin") == Self.bytes
        let left = place.names()
            .subtracting(Self.others + ["files/up.bin", "files/down.bin"] + (isOldComplete ? ["files/old.bin"] : []))
            .filter { !$0.hasPrefix("storage/") || UUID(uuidString: String($0.dropFirst("storage/".count))) == nil }
        #expect(left.isEmpty, "\(moment): \(left.sorted()) are left")
        checkOthers(place, moment)
    }

    private func withServer(_ body: @Sendable (ServerProcess, _ url: String) throws -> Void) throws {
        try EndToEndTests.withServer { server in
            _ = try server.publish(Self.bytes, as: "f.bin")
            try body(server, server.url("/files/"))
        }
    }

    @Test("a state is synchronized before it gets its name, and all changes of names before they are acknowledged")
    func synchronization() throws {
        try withServer { server, url in
            let place = try Place("synchronization", url)
            #expect(try place.run().ending == .exited(0))
            var disk = DiskNames()
            for operation in place.operations.operations() {
                for problem in disk.apply(operation) { Issue.record("\(problem) before \(operation)") }
            }
            #expect(disk.acknowledgments > 8)
        }
    }

    /// The names that are on stable storage after the operations so far.
    private struct DiskNames {
        private(set) var acknowledgments = 0
        /// Files with bytes that were not synchronized.
        private var unsynchronized: Set<String> = []
        /// For each directory: the names that have changed since its last synchronization, and whether each was
        /// removed.
        private var changes: [String: [String: Bool]] = [:]
        /// States that can be read after a crash of the system.
        private var durable: Set<String> = []

        /// - Returns: the names that have to be on stable storage before this operation, and are not.
        mutating func apply(_ operation: FileOperations.Operation) -> [String] {
            var problems: [String] = []
            let isState = { (name: String) in name.hasSuffix(".state") }
            switch operation.name {
            case "write" where operation.path == "journal":
                acknowledgments += 1
                // If an earlier state of this name is durable, the new one need not be: the transfer may save its next
                // checkpoint while the program writes the last one to the journal.
                problems = (changes["store"] ?? [:]).filter { isState($0.key) }
                    .filter { $0.value || !durable.contains($0.key) }.map { "the change of \($0.key) is not durable" }
            case "write": unsynchronized.insert(operation.path)
            case "sync":
                unsynchronized.remove(operation.path)
                for (name, isRemoved) in changes.removeValue(forKey: operation.path) ?? [:] {
                    if isRemoved { durable.remove(name) } else { durable.insert(name) }
                }
            case "rename":
                let name = operation.newPath ?? ""
                if isState(name), unsynchronized.contains(operation.path) {
                    problems = ["the content of \(name) is not durable"]
                }
                change(name, isRemoved: false)
            case "unlink":
                // A crash of the system may undo changes of names that are not durable. Without its state, the store
                // could then not find the file of a download.
                if isState(operation.path) {
                    problems = (changes["files"] ?? [:]).keys.map { "the change of \($0) is not durable" }
                }
                change(operation.path, isRemoved: true)
            default: break
            }
            return problems
        }

        private mutating func change(_ path: String, isRemoved: Bool) {
            let directory = String(path.prefix { $0 != "/" })
            changes[directory, default: [:]][path] = isRemoved
        }
    }

    /// The numbers of the operations at which the program is killed: every sixth one, or all of them with
    /// `ONWARD_KILLS=all` (`make test-kills`).
    private static let numbers = stride(
        from: 1, to: 2000, by: ProcessInfo.processInfo.environment["ONWARD_KILLS"] == "all" ? 1 : 6)

    @Test("a program that is killed at an operation, and started again, loses nothing and leaves nothing")
    func kills() throws {
        try withServer { server, url in
            for number in Self.numbers {
                let place = try Place("kill-\(number)", url)
                let (ending, errors) = try place.run(killAt: number)
                if ending == .exited(0) {
                    #expect(number > 100)
                    try checkEnd(place, server, "a run without a kill")
                    return
                }
                let last = place.operations.operations().last
                let moment = "operation \(number), \(last.map { "\($0)" } ?? "none")"
                #expect(ending == .signaled(SIGKILL), "\(moment): \(errors)")
                try check(place, server, moment)
                let second = try place.run()
                #expect(second.ending == .exited(0), "\(moment): \(second.errors)")
                try checkEnd(place, server, moment)
            }
        }
    }
}
