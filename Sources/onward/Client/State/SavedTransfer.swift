import Foundation
import ResumableTransfer
import SystemCalls

/// The content of a state file: an interrupted transfer and the options for its resumption.
struct SavedTransfer: Sendable, Hashable, Codable {
    /// Options that another command than the first one needs, too.
    struct Options: Sendable, Hashable, Codable {
        var tokenFile: FilePath?
        var caFile: FilePath?
        var appendSize: Int64?

        /// Which credentials the transfer was begun with, for people.
        var credentials: String {
            tokenFile.map { "--token-file \(ProgressMessages.shellWord($0))" } ?? "those of --header, or none"
        }
    }

    static let currentVersion = 1

    var version = currentVersion
    var identity: TransferIdentity
    var options: Options
    /// Bytes up to which an upload had handed them out; the server may have kept less.
    var sent: Int64?
    /// Seconds since 1970.
    var savedAt: Int64
    /// The library's bytes, without a ticket: the lock of the command sees to it that they are used once at a time.
    var resumeData: Data

    /// - Throws: if the bytes are no state of a version that is known here.
    static func decode(_ data: Data) throws(CommandFailure) -> (SavedTransfer, ResumeData) {
        struct Version: Decodable { var version: Int }
        let decoder = JSONDecoder()
        guard let version = try? decoder.decode(Version.self, from: data).version else {
            throw CommandFailure(.inputOutput, "state-damaged", "is damaged")
        }
        guard version == currentVersion else {
            throw CommandFailure(.inputOutput, "state-damaged", "is of version \(version), known is \(currentVersion)")
        }
        guard let saved = try? decoder.decode(SavedTransfer.self, from: data),
            let resumeData = try? ResumeData(saved.resumeData)
        else {
            throw CommandFailure(.inputOutput, "state-damaged", "is damaged")
        }
        return (saved, resumeData)
    }

    func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return try encoder.encode(self) + Data([0x0A])
    }
}
