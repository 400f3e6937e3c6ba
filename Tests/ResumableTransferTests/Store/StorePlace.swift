import Foundation
import SystemCalls
import TestSupport

@testable import ResumableTransfer

/// A store in a temporary directory. The storage directory of its client is in the same temporary directory.
struct StorePlace {
    let directory: TemporaryDirectory
    let store: TransferStore
    var path: String { directory.path + "/store" }
    var storage: String { directory.path + "/storage" }

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = TransferClient.Configuration()
        configuration.storageDirectory = directory.path + "/storage"
        store = try TransferStore(
            directory: URL(filePath: directory.path + "/store"), client: TransferClient(configuration))
    }

    /// The names of all files in the directory of the store.
    func names() -> [String] { store.directory.names() }

    func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        try directory.file("store/" + name, bytes)
    }

    func save(
        _ name: String, _ record: ResumeRecord = .uploadSample(), userInfo: [String: String] = [:],
        savedAt: Int64 = 1_700_000_000
    ) throws {
        try save(name, StoredTransfer(ResumeData(record), sent: nil, savedAt: savedAt, userInfo: userInfo))
    }

    func save(_ name: String, _ stored: StoredTransfer) throws {
        _ = try file(TransferStore.stem(of: name).repairedText + ".state", stored.encoded())
    }
}
