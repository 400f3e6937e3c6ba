import Foundation
import Glibc
import ResumableTransfer
import SystemCalls

/// The recipes of the articles on pausing and resuming, as a program that is killed at a point that the test chooses.
///
///     TransferRecipes upload|download DIRECTORY FILE URL [pause]
///     TransferRecipes store-upload|store-download DIRECTORY FILE URL
///     TransferRecipes store-history DIRECTORY URL
///     TransferRecipes store-sweep DIRECTORY
///     TransferRecipes write DIRECTORY
///
/// The transfers of the second form are in a ``TransferStore``. The third form is ``StoreHistory``. The fourth form
/// sweeps the directory, as a program does whose store keeps no transfers. The fifth form writes the resume data of the
/// file `new` to the file `saved`.
///
/// `DIRECTORY` contains the saved data and the tickets. With `pause` the transfer is paused, and its data saved, as
/// soon as bytes were transferred. The exit status is 0 after the transfer is complete, 75 after a pause, and 1 after
/// an error, whose code is on standard error.
///
/// With `ONWARD_KILL_AT=N` the program kills itself with SIGKILL at the N-th point. There are points before and after
/// every event, every call of `onCheckpoint`, and every save.
@main
struct TransferRecipes {
    private static let points = Monitor(0)
    private static let lastPoint = ProcessInfo.processInfo.environment["ONWARD_KILL_AT"].flatMap(Int.init)

    private static func point() {
        let number = points.withLock { points in
            points += 1
            return points
        }
        if number == lastPoint { kill(getpid(), SIGKILL) }
    }

    static func main() async {
        let arguments = CommandLine.arguments
        if arguments.count == 3, arguments[1] == "write" { exit(write(in: URL(filePath: arguments[2]))) }
        if arguments.count >= 3, ["store-history", "store-sweep"].contains(arguments[1]) {
            await runHistory(arguments)
        }
        guard arguments.count >= 5 else { exit(64) }
        let saved = URL(filePath: arguments[2] + "/saved")
        let save: @Sendable (ResumeData) -> Void = { data in
            point()
            try? data.write(to: saved)
            point()
        }
        var configuration = TransferClient.Configuration()
        configuration.storageDirectory = arguments[2] + "/storage"
        configuration.rateLimit = 8_000_000
        if arguments[1].hasPrefix("store-") { await runInStore(arguments, configuration) }
        configuration.onCheckpoint = save
        let client = TransferClient(configuration)
        do throws(TransferError) {
            let hasData = FileManager.default.fileExists(atPath: saved.path)
            let data: ResumeData? = if hasData { try ResumeData(contentsOf: saved) } else { nil }
            point()
            let transfer: any Transfer
            if arguments[1] == "upload" {
                transfer =
                    if let data {
                        try client.resumeUpload(data)
                    } else {
                        client.upload(
                            TransferRequest(arguments[4], method: .post), from: try FileSource(path: arguments[3]))
                    }
            } else {
                transfer =
                    if let data {
                        try client.resumeDownload(data)
                    } else {
                        client.download(TransferRequest(arguments[4]), to: .file(arguments[3]))
                    }
            }
            point()
            for await event in transfer.events() {
                point()
                switch event {
                case .checkpoint(let data): save(data)
                case .progress(let moved, _, _) where arguments.count > 5 && moved > 0,
                    .received(let moved, _) where arguments.count > 5 && moved > 0:
                    if let data = await transfer.pause() { save(data) }
                    point()
                    exit(75)
                case .failed(let error): throw error
                default: break
                }
            }
            point()
            try? FileManager.default.removeItem(at: saved)
            exit(0)
        } catch {
            FileHandle.standardError.write(Data((error.code.rawValue + "\n").utf8))
            exit(1)
        }
    }

    /// The transfers of the article on relaunches.
    private static func runInStore(
        _ arguments: [String], _ configuration: TransferClient.Configuration
    ) async -> Never {
        do {
            let file = URL(filePath: arguments[3])
            guard let url = URL(string: arguments[4]) else { exit(64) }
            let transfers = try Transfers(
                directory: URL(filePath: arguments[2] + "/store"), configuration: configuration)
            point()
            let transfer: any Transfer =
                if arguments[1] == "store-upload" {
                    try await transfers.upload(file, to: url)
                } else {
                    try await transfers.download(url, to: file)
                }
            point()
            for await event in transfer.events() {
                point()
                if case .failed(let error) = event { throw error }
            }
            point()
            exit(0)
        } catch {
            let code = (error as? TransferError)?.code.rawValue ?? "\(error)"
            FileHandle.standardError.write(Data((code + "\n").utf8))
            exit(1)
        }
    }

    private static func runHistory(_ arguments: [String]) async -> Never {
        do {
            if arguments[1] == "store-history" {
                try await StoreHistory(directory: arguments[2], url: arguments[3]).run()
            } else {
                var configuration = TransferClient.Configuration()
                configuration.storageDirectory = arguments[2] + "-storage"
                let store = try TransferStore(
                    directory: URL(filePath: arguments[2]), client: TransferClient(configuration))
                _ = await store.sweep(olderThan: .zero)
            }
            exit(0)
        } catch {
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            exit(1)
        }
    }

    private static func write(in directory: URL) -> Int32 {
        do throws(TransferError) {
            try ResumeData(contentsOf: directory.appending(path: "new")).write(to: directory.appending(path: "saved"))
            return 0
        } catch {
            return 1
        }
    }
}
