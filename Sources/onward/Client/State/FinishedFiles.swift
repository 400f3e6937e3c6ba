import Foundation
import Glibc
import SystemCalls

/// What a command with several files has done already, so that the same command does not do it again. It is there until
/// all of them are done, by whatever commands, or one of them is cancelled.
struct FinishedFiles: Sendable {
    /// One file, as it was when it was sent.
    struct Entry: Sendable, Hashable, Codable {
        var path: FilePath
        var size: Int64
        /// Nanoseconds since 1970.
        var modified: Int64
        var inode: UInt64
        /// Of the response.
        var status: Int
        var location: String?
    }

    private struct Content: Codable {
        static let currentVersion = 2

        var version = currentVersion
        /// The transfers of the command.
        var members: [TransferIdentity]
        /// One for each file that was sent.
        var entries: [Entry] = []
    }

    private static let prefix = "several-"
    private static let suffix = ".done"

    private let fileName: FilePath

    private init(fileName: FilePath) { self.fileName = fileName }

    /// The list of the command with these transfers.
    init(_ members: [TransferIdentity]) {
        fileName = FilePath(Self.prefix + TransferIdentity.digest(members.map { Array($0.name.utf8) }) + Self.suffix)
    }

    private func content(in states: PrivateDirectory) -> Content? {
        guard let data = try? states.read(fileName),
            let content = try? JSONDecoder().decode(Content.self, from: data), content.version == Content.currentVersion
        else { return nil }
        return content
    }

    private func save(_ content: Content, in states: PrivateDirectory) {
        guard let data = try? JSONEncoder().encode(content) else { return }
        try? states.replace(fileName, with: data)
    }

    /// Makes the list where there is none, so that other commands find it.
    func begin(_ members: [TransferIdentity]) {
        guard let states = try? PrivateDirectory.states(), content(in: states) == nil else { return }
        save(Content(members: members), in: states)
    }

    /// What is known of `path`, unless it has changed since.
    func entry(of path: FilePath) -> Entry? {
        guard let states = PrivateDirectory.existingStates(), let entries = content(in: states)?.entries else {
            return nil
        }
        return entries.last { $0.path == path && $0 == Entry(path, status: $0.status, location: $0.location) }
    }

    func forget() {
        if let states = try? PrivateDirectory.states() { states.remove(fileName) }
    }

    /// Forgets a list that says nothing: no file was sent, and none can be gone on with.
    func forgetIfVain() {
        guard let states = PrivateDirectory.existingStates(), let content = content(in: states) else { return }
        let names = Set(states.names())
        guard content.entries.isEmpty, !content.members.contains(where: { names.contains($0.name + StateFile.suffix) })
        else { return }
        forget()
    }
}

// MARK: - The lists that a transfer is in

extension FinishedFiles {
    /// All lists with `member`, whatever command has made them.
    private static func all(with member: TransferIdentity) -> [(list: FinishedFiles, content: Content)] {
        guard let states = PrivateDirectory.existingStates() else { return [] }
        return states.names().filter { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }.compactMap { name in
            let list = FinishedFiles(fileName: FilePath(name))
            guard let content = list.content(in: states), content.members.contains(member) else { return nil }
            return (list, content)
        }
    }

    /// Notes that a file has been sent.
    static func add(_ entry: Entry?, of member: TransferIdentity) {
        guard let entry, let states = try? PrivateDirectory.states() else { return }
        for (list, var content) in all(with: member) {
            content.entries = content.entries.filter { $0.path != entry.path } + [entry]
            list.save(content, in: states)
        }
    }

    /// Forgets the lists of which `member` is one, and all are done. A command with several files does that at its end:
    /// until then it needs its own.
    static func conclude(_ member: TransferIdentity) {
        for (list, content) in all(with: member)
        where Set(content.members.map(\.path)).isSubset(of: content.entries.map(\.path)) {
            list.forget()
        }
    }

    /// Forgets the lists with a transfer that nobody wants any more.
    static func cancel(_ member: TransferIdentity) {
        for (list, _) in all(with: member) { list.forget() }
    }
}

extension FinishedFiles.Entry {
    /// The file as it is now; `nil` where it cannot be looked at.
    init?(_ path: FilePath, status: Int, location: String?) {
        guard let now = try? FileDescriptor.open(path, [.readOnly, .nonBlocking]).status() else { return nil }
        self.init(
            path: path, size: now.size,
            modified: now.modified.seconds &* 1_000_000_000 &+ now.modified.nanoseconds, inode: now.inode,
            status: status, location: location)
    }
}
