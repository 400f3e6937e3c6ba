import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

/// A client with a storage directory of its own, and the records of its observer.
final class UploadFixture: Sendable {
    let directory: TemporaryDirectory
    let client: TransferClient
    private let records: Monitor<[TransferRecord]>

    /// - Parameter change: changes the configuration, in which all waits are short.
    init(_ change: (inout TransferClient.Configuration) -> Void = { _ in }) throws {
        directory = try TemporaryDirectory()
        let records = Monitor<[TransferRecord]>([])
        self.records = records
        var configuration = TransferClient.Configuration()
        configuration.storageDirectory = directory.path + "/storage"
        configuration.retry.delays = [.zero, .milliseconds(20), .milliseconds(50)]
        configuration.stallTimeout = .seconds(60)
        configuration.onMessage = { record in records.withLock { $0.append(record) } }
        change(&configuration)
        client = TransferClient(configuration)
    }

    var observed: [TransferRecord] { records.withLock { $0 } }

    /// Writes a file and returns it as a source.
    func file(_ bytes: [UInt8], _ name: String = "source.bin") throws -> FileSource {
        let path = directory.path + "/" + name
        try Data(bytes).write(to: URL(filePath: path))
        return try FileSource(path: path)
    }

    /// The names of the tickets in the storage directory.
    var tickets: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.path + "/storage")) ?? []
    }
}

extension Transfer {
    /// The error with which the transfer ends; `nil` if it succeeds.
    func failure() async -> TransferError? {
        do {
            _ = try await value()
            return nil
        } catch let error as TransferError {
            return error
        } catch {
            Issue.record(error)
            return nil
        }
    }

    /// All events of the transfer; returned when it has ended.
    func history() async -> [TransferEvent] {
        var events: [TransferEvent] = []
        for await event in self.events() { events.append(event) }
        return events
    }
}

/// The bytes that a scripted server has received.
final class UploadInventory: Sendable {
    private let state = Monitor<[UInt8]>([])

    var bytes: [UInt8] { state.withLock { $0 } }
    var count: Int { state.withLock { $0.count } }

    func append(_ bytes: [UInt8]) { state.withLock { $0 += bytes } }

    func drop(to count: Int) { state.withLock { $0.removeSubrange(min(count, $0.count)...) } }
}

/// Expects two large contents to be equal, and prints neither of them.
func expectSame(
    _ left: [UInt8], _ right: [UInt8], _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    let isSame = areEqual(left, right)
    #expect(isSame, comment, sourceLocation: sourceLocation)
}
