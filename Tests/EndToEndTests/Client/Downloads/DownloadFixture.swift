import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import Testing

extension UploadFixture {
    /// Where downloads go.
    var destination: String { directory.path + "/downloads/result.bin" }

    /// Prepares a download into a directory of its own.
    func download(_ uri: String, _ fields: Fields = [:]) throws -> Download {
        try FileManager.default.createDirectory(
            atPath: directory.path + "/downloads", withIntermediateDirectories: true)
        return client.download(TransferRequest(uri, fields: fields), to: .file(destination))
    }

    /// The names beside the destination.
    var downloads: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.path + "/downloads")) ?? []
    }

    /// The partial files beside the destination.
    var partials: [String] { downloads.filter { $0.hasSuffix(".part") } }

    /// What is at the destination; empty where there is nothing.
    var result: [UInt8] { [UInt8](FileManager.default.contents(atPath: destination) ?? Data()) }
}

extension Download {
    /// Waits until so many bytes are at hand.
    func awaitBytes(_ count: Int64) async {
        for await event in events {
            if case .received(let position, _) = event, position >= count { return }
        }
    }
}

extension [TransferEvent] {
    /// Where the transfer continued.
    var resumptions: [Int64] {
        compactMap { event in
            if case .resumed(let offset) = event { offset } else { nil }
        }
    }

    /// What interrupted it.
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
