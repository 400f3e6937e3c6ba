import Foundation
import SystemCalls

/// The content of a state file: an interrupted transfer, and the values that the program stores with it.
package struct StoredTransfer: Sendable, Hashable {
    /// The data to resume the transfer with. Transfers of a store have data without tickets, because the lock of the
    /// state ensures that only one process at a time uses it.
    package var resumeData: ResumeData
    /// The position up to which an upload has sent bytes; the server may have received fewer. `nil` for a download.
    package var sent: Int64?
    /// The time of this save, in seconds since 1970.
    package var savedAt: Int64
    /// The strings that the program stores with the transfer.
    package var userInfo: [String: String]
    /// All other members of the file, which are kept.
    private var members: [String: JSONValue] = [:]

    package init(_ resumeData: ResumeData, sent: Int64?, savedAt: Int64, userInfo: [String: String] = [:]) {
        self.resumeData = resumeData
        self.sent = sent
        self.savedAt = savedAt
        self.userInfo = userInfo
    }

    /// The member `name`, which is not one of this type.
    /// - Throws: `DecodingError` if there is no such member, or if it has another form.
    package func member<Value: Decodable>(_ name: String, as type: Value.Type) throws -> Value {
        let bytes = try JSONEncoder().encode([members[name] ?? .null])
        return try JSONDecoder().decode([Value].self, from: bytes)[0]
    }

    /// Adds or replaces the member `name`.
    package mutating func setMember(_ name: String, to value: some Encodable) {
        let bytes = try? JSONEncoder().encode([value])
        members[name] = bytes.flatMap { try? JSONDecoder().decode([JSONValue].self, from: $0) }?.first
    }
}

extension StoredTransfer: Codable {
    /// Version 1 has the resume data as bytes in base64. Version 2 has its JSON, and its kind. Records
    /// of earlier versions in the lists of sent files have version 2 without the members `version` and `kind`.
    private static let currentVersion = 2

    private enum CodingKeys: String, CodingKey {
        case version, kind, sent, savedAt, userInfo, transfer, resumeData
    }

    /// A key for a member with any name.
    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        sent = try container.decodeIfPresent(Int64.self, forKey: .sent)
        savedAt = try container.decode(Int64.self, forKey: .savedAt)
        userInfo = try container.decodeIfPresent([String: String].self, forKey: .userInfo) ?? [:]
        let stated = try container.decodeIfPresent(Int.self, forKey: .version)
        let version = stated ?? 2
        guard (1...Self.currentVersion).contains(version) else {
            throw DecodingError.dataCorruptedError(
                forKey: .version, in: container, debugDescription: "the version is not supported")
        }
        if version == 1 {
            resumeData = try container.decode(ResumeData.self, forKey: .resumeData)
        } else {
            resumeData = try container.decode(EmbeddedResumeData.self, forKey: .transfer).data
            let kind = resumeData.kind.rawValue
            guard try stated == nil || container.decode(String.self, forKey: .kind) == kind else {
                throw DecodingError.dataCorruptedError(
                    forKey: .kind, in: container, debugDescription: "kind and transfer contradict each other")
            }
        }
        let others = try decoder.container(keyedBy: AnyKey.self)
        for key in others.allKeys where CodingKeys(stringValue: key.stringValue) == nil {
            members[key.stringValue] = try others.decode(JSONValue.self, forKey: key)
        }
    }

    package func encode(to encoder: any Encoder) throws {
        try members.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(Self.currentVersion, forKey: .version)
        try container.encode(resumeData.kind.rawValue, forKey: .kind)
        try container.encodeIfPresent(sent, forKey: .sent)
        try container.encode(savedAt, forKey: .savedAt)
        if !userInfo.isEmpty { try container.encode(userInfo, forKey: .userInfo) }
        try container.encode(EmbeddedResumeData(resumeData), forKey: .transfer)
    }

    /// Reads the content of a state file.
    /// - Parameter path: the path of the file, for the error.
    /// - Throws: `damaged` if the bytes are not a state of a supported version.
    package static func decode(_ data: Data, from path: FilePath) throws(StateError) -> StoredTransfer {
        let decoder = JSONDecoder()
        if let stored = try? decoder.decode(StoredTransfer.self, from: data) {
            // The resume data in a small file is small, too. It is encoded only for a large file.
            if data.count <= ResumeData.maxSize || stored.resumeData.data.count <= ResumeData.maxSize {
                return stored
            }
        }
        struct Version: Decodable { var version: Int }
        guard let version = try? decoder.decode(Version.self, from: data).version,
            !(1...currentVersion).contains(version)
        else { throw .damaged(path, reason: "is damaged") }
        throw .damaged(path, reason: "has version \(version), but only versions 1 to \(currentVersion) are supported")
    }

    package func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        return try encoder.encode(self) + Data([UInt8(ascii: "\n")])
    }
}
