import Foundation
import Glibc
import ResumableTransfer
import SystemCalls

/// Starts, pauses, resumes, cancels and discards transfers of a store. Tests kill the program at every operation on a
/// file and start it again; then it makes the remaining steps.
///
/// `DIRECTORY` contains the directories `store`, `storage` and `files`, and the file `journal`. What the store has
/// acknowledged is appended to the journal, one line each: the word, the name of the entry, and its position.
struct StoreHistory {
    private let directory: String
    private let url: String
    /// The rate of its transfers is limited, so that they do not end before they are paused.
    private let slow: TransferStore
    private let fast: TransferStore
    private let journal: FileDescriptor
    /// The entries whose last step is in the journal.
    private let ended: Set<String>

    /// - Parameter url: the URL of a collection for uploads, which has the file `f.bin`.
    init(directory: String, url: String) throws {
        self.directory = directory
        self.url = url
        func store(rateLimit: Int64?) throws -> TransferStore {
            var configuration = TransferClient.Configuration()
            configuration.storageDirectory = directory + "/storage"
            configuration.rateLimit = rateLimit
            return try TransferStore(
                directory: URL(filePath: directory + "/store"), client: TransferClient(configuration))
        }
        slow = try store(rateLimit: 400_000)
        fast = try store(rateLimit: nil)
        journal = try FileDescriptor.open(directory + "/journal", [.readWrite, .create, .append])
        // A kill may have left a part of a line.
        let content = try journal.content(atMost: 1 << 20)
        let end = content.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        try journal.truncate(to: Int64(end))
        let lines = String(decoding: content[..<end], as: UTF8.self).split(separator: "\n")
        ended = Set(
            lines.map { $0.split(separator: " ") }.filter { ["done", "removed"].contains($0[0]) }.map { String($0[1]) })
    }

    func run() async throws {
        if !ended.contains("up") {
            try await pause(await slow.upload(file: files("up.bin"), to: url + upload("up"), as: "up"), "up")
            _ = try await fast.upload(file: files("up.bin"), to: url + upload("up"), as: "up").value()
            note("done up")
        }
        if !ended.contains("down") {
            try await pause(await download("down", slow), "down")
            _ = try await download("down", fast).value()
            note("done down")
        }
        if !ended.contains("discarded") {
            try await pause(await slow.download(file, to: .temporary, as: "discarded"), "discarded")
            if let entry = await fast.entry("discarded") { try await fast.discard(entry) }
            note("removed discarded")
        }
        if !ended.contains("canceled") {
            do {
                let upload = try await slow.upload(file: files("up.bin"), to: url + upload("canceled"), as: "canceled")
                await checkpoint(upload, "canceled")
                await upload.cancel()
            } catch  where error.code == .gone {}
            note("removed canceled")
        }
        if !ended.contains("old") {
            try await pause(await download("old", slow), "old")
            _ = await fast.sweep(olderThan: .zero)
            note("removed old")
        }
        // Removes the files that an earlier process has left after the end of its last transfer.
        _ = await fast.sweep(olderThan: .zero)
    }

    // MARK: Steps

    /// Pauses a transfer at its first checkpoint. It may end before.
    private func pause(_ transfer: any Transfer, _ name: String) async throws {
        await checkpoint(transfer, name)
        guard let data = await transfer.pause() else { return }
        note("saved \(name) \(data.position)")
    }

    private func checkpoint(_ transfer: any Transfer, _ name: String) async {
        for await event in transfer.events() {
            guard case .checkpoint(let data) = event else { continue }
            return note("saved \(name) \(data.position)")
        }
    }

    // MARK: Names

    private var file: TransferRequest { TransferRequest(url + "f.bin") }

    private func files(_ name: String) -> String { directory + "/files/" + name }

    /// The name of an upload on the server, which has the uploads of several directories.
    private func upload(_ name: String) -> String { FilePath(directory).lastComponent.repairedText + "-" + name }

    private func download(_ name: String, _ store: TransferStore) async throws -> Download {
        try await store.download(file, to: .file(files(name + ".bin")), as: name)
    }

    private func note(_ line: String) {
        var bytes = Array((line + "\n").utf8)
        // One call, so that a kill leaves a prefix of the line.
        _ = Glibc.write(journal.rawValue, &bytes, bytes.count)
    }
}
