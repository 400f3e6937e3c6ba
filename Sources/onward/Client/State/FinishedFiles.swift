import Foundation
import Glibc
import SystemCalls

/// What a command with several files has done already, so that the same command does not do it again. It is there until
/// all of them are done.
struct FinishedFiles: Sendable {
    /// One file, as it was when it was sent.
    struct Entry: Sendable, Hashable, Codable {
        var path: String
        var size: Int64
        /// Nanoseconds since 1970.
        var modified: Int64
        var inode: UInt64
        /// Of the response.
        var status: Int
        var location: String?
    }

    private struct Content: Codable {
        var version = 1
        var entries: [Entry]
    }

    let batch: String
    private var fileName: String { "several-\(batch).done" }

    /// - Parameter batch: by what the command is known again.
    init(_ batch: String) { self.batch = batch }

    init(_ identities: [TransferIdentity]) {
        batch = TransferIdentity.digest(identities.map(\.name))
    }

    private var entries: [Entry] {
        guard let states = try? PrivateDirectory.states(), let data = try? states.read(fileName),
            let content = try? JSONDecoder().decode(Content.self, from: data), content.version == 1
        else { return [] }
        return content.entries
    }

    /// What is known of `path`, unless it has changed since.
    func entry(of path: String) -> Entry? {
        entries.last { $0.path == path && $0 == Entry(path, status: $0.status, location: $0.location) }
    }

    /// Notes that a file has been sent.
    func add(_ entry: Entry?) {
        guard let entry, let states = try? PrivateDirectory.states(),
            let data = try? JSONEncoder().encode(Content(entries: entries.filter { $0.path != entry.path } + [entry]))
        else { return }
        try? states.replace(fileName, with: data)
    }

    func forget() {
        if let states = try? PrivateDirectory.states() { states.remove(fileName) }
    }
}

extension FinishedFiles.Entry {
    /// The file as it is now; `nil` where it cannot be looked at.
    init?(_ path: String, status: Int, location: String?) {
        guard let now = try? FileDescriptor.open(path, [.readOnly, .nonBlocking]).status() else { return nil }
        self.init(
            path: path, size: now.size,
            modified: now.modified.seconds &* 1_000_000_000 &+ now.modified.nanoseconds, inode: now.inode,
            status: status, location: location)
    }
}
