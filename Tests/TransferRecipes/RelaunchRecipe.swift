// The code of the article "Resuming transfers after a relaunch". A test compares both.

import Foundation
import ResumableTransfer

/// The transfers of a program. A later launch resumes those that have not ended.
struct Transfers {
    let store: TransferStore

    init(directory: URL, configuration: TransferClient.Configuration = .init()) throws {
        store = try TransferStore(directory: directory, client: TransferClient(configuration))
    }

    /// Uploads a file, or resumes its upload.
    func upload(_ file: URL, to url: URL) async throws -> Upload {
        try await store.upload(file: file, to: url, as: file.lastPathComponent)
    }

    /// Downloads a file, or resumes its download.
    func download(_ url: URL, to file: URL) async throws -> Download {
        try await store.download(TransferRequest(url), to: .file(file), as: file.lastPathComponent)
    }

    /// Resumes everything that earlier launches have left.
    func resumeAll() async {
        for entry in await store.entries() where !entry.isRunning {
            do {
                _ = try await store.resume(entry).value()
                print("\(entry.name): done")
            } catch let error as TransferError where error.canRetry {
                print("\(entry.name): the next launch tries again. \(error.message)")
            } catch {
                print("\(entry.name): \(error.localizedDescription)")
            }
        }
    }

    /// Shuts down the client before the program ends.
    func quit() async {
        await store.client.shutDown()
    }

    /// Prints all transfers.
    func list() async {
        for entry in await store.entries() {
            if let damage = entry.damage {
                print("\(entry.name): \(damage.message)")
            } else {
                let state = entry.isRunning ? "running" : "paused"
                print("\(entry.name): \(entry.position) of \(entry.total ?? 0) bytes, \(state)")
            }
        }
    }

    /// Removes a transfer, and also its upload on the server or its partial file.
    func remove(_ name: String) async throws {
        guard let entry = await store.entry(name) else { return }
        try await store.discard(entry)
    }

    /// Removes transfers whose saved state has not changed for 30 days.
    func sweep() async {
        let sweep = await store.sweep(olderThan: .seconds(30 * 24 * 3600))
        print("Removed \(sweep.entries.count) transfers and \(sweep.files.count) other files.")
    }
}
