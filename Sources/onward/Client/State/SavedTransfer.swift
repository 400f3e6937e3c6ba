import Foundation
import ResumableTransfer
import SystemCalls

/// The content of a state file: an interrupted transfer and the options for its resumption.
struct SavedTransfer: Sendable, Hashable {
    /// The options that a resumption by another command also uses.
    struct Options: Sendable, Hashable, Codable {
        var tokenFile: FilePath?
        var caFile: FilePath?
        var appendSize: Int64?

        /// The credentials of the transfer, for messages.
        var credentials: String {
            tokenFile.map { "--token-file \(ProgressMessages.shellWord($0))" } ?? "those of --header, or none"
        }
    }

    var identity: TransferIdentity
    var options: Options
    /// The position up to which an upload has sent bytes; the server may have received fewer.
    var sent: Int64?
    /// The time of this save, in seconds since 1970.
    var savedAt: Int64
    /// The resume data. It has no ticket, because the lock of the command ensures that only one process at a time uses
    /// it.
    var resumeData: ResumeData
}

extension SavedTransfer: Codable {
    /// Version 1 has the resume data as bytes in base64. Version 2 has its JSON, and its kind.
    private static let currentVersion = 2

    private enum CodingKeys: String, CodingKey {
        case version, kind, identity, options, sent, savedAt, transfer, resumeData
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        identity = try container.decode(TransferIdentity.self, forKey: .identity)
        options = try container.decode(Options.self, forKey: .options)
        sent = try container.decodeIfPresent(Int64.self, forKey: .sent)
        savedAt = try container.decode(Int64.self, forKey: .savedAt)
        let kind: ResumeData.Kind = identity.kind == .put ? .upload : .download
        if try container.decode(Int.self, forKey: .version) == 1 {
            resumeData = try ResumeData(container.decode(Data.self, forKey: .resumeData))
        } else {
            resumeData = try container.decode(EmbeddedResumeData.self, forKey: .transfer).data
            guard try container.decode(String.self, forKey: .kind) == kind.rawValue else {
                throw DecodingError.dataCorruptedError(
                    forKey: .kind, in: container, debugDescription: "kind and identity contradict each other")
            }
        }
        guard resumeData.kind == kind else {
            throw DecodingError.dataCorruptedError(
                forKey: .identity, in: container, debugDescription: "identity and transfer contradict each other")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(Self.currentVersion, forKey: .version)
        try container.encode(resumeData.kind.rawValue, forKey: .kind)
        try container.encode(identity, forKey: .identity)
        try container.encode(options, forKey: .options)
        try container.encodeIfPresent(sent, forKey: .sent)
        try container.encode(savedAt, forKey: .savedAt)
        try container.encode(EmbeddedResumeData(resumeData), forKey: .transfer)
    }

    /// - Throws: if the bytes are not a state of a known version.
    static func decode(_ data: Data) throws(CommandFailure) -> SavedTransfer {
        struct Version: Decodable { var version: Int }
        let decoder = JSONDecoder()
        guard let version = try? decoder.decode(Version.self, from: data).version else {
            throw CommandFailure(.inputOutput, "state-damaged", "is damaged")
        }
        guard (1...currentVersion).contains(version) else {
            throw CommandFailure(
                .inputOutput, "state-damaged", "has version \(version); supported are 1 to \(currentVersion)")
        }
        guard let saved = try? decoder.decode(SavedTransfer.self, from: data) else {
            throw CommandFailure(.inputOutput, "state-damaged", "is damaged")
        }
        return saved
    }

    func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return try encoder.encode(self) + Data([0x0A])
    }
}
