import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import Testing

extension UploadFixture {
    /// The file that a download is to create.
    var destination: String { directory.path + "/downloads/result.bin" }

    /// Prepares a download to ``destination``.
    func download(_ uri: String, _ fields: Fields = [:]) throws -> Download {
        try FileManager.default.createDirectory(
            atPath: directory.path + "/downloads", withIntermediateDirectories: true)
        return client.download(TransferRequest(uri, fields: fields), to: .file(destination))
    }

    /// The names of the files in the directory of the destination.
    var downloads: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.path + "/downloads")) ?? []
    }

    /// The names of the partial files in the directory of the destination.
    var partials: [String] { downloads.filter { $0.hasSuffix(".part") } }

    /// The content of the destination; empty if there is no file.
    var result: [UInt8] { [UInt8](FileManager.default.contents(atPath: destination) ?? Data()) }
}

extension Download {
    /// Waits until the download has received `count` bytes.
    func awaitBytes(_ count: Int64) async {
        for await event in events() {
            if case .received(let position, _) = event, position >= count { return }
        }
    }
}

extension [TransferEvent] {
    /// The offsets at which the transfer continued.
    var resumptions: [Int64] {
        compactMap { event in
            if case .resumed(let offset) = event { offset } else { nil }
        }
    }

    /// The errors that interrupted the transfer.
    var interruptions: [TransferError] {
        compactMap { event in
            if case .interrupted(let error, _) = event { error } else { nil }
        }
    }

    var checkpoints: [ResumeData] {
        compactMap { event in
            if case .checkpoint(let data) = event { data } else { nil }
        }
    }
}
