import FoundationEssentials
import SystemCalls

/// What servers of a test share instead of a data directory: an empty database, and an unused prefix of a bucket. Both are
/// removed when this object is released.
package final class SharedStorage: Sendable {
    /// Whether tests of the programs start servers with such a storage: the variable `ONWARD_STORE` is `cluster`.
    package static let isSelected = ProcessInfo.processInfo.environment["ONWARD_STORE"] == "cluster"

    /// The number of servers that a test starts instead of one: `ONWARD_NODES`.
    @TaskLocal package static var nodes =
        isSelected ? ProcessInfo.processInfo.environment["ONWARD_NODES"].flatMap { Int($0) } ?? 1 : 1

    private struct Shared {
        var bucket: String?
        var prefixes = 0
    }

    private static let shared = Monitor(Shared())

    package let database: SharedDatabase
    package let objects: SeaweedFS
    private let place: String
    /// The options of `onward serve`.
    package let options: [String]
    /// The variables of `onward serve`.
    package var environment: [String: String] { objects.environment }

    package init() throws {
        let objects = try SeaweedFS.shared()
        let (bucket, number) = try Self.shared.withLock { shared in
            let bucket = try shared.bucket ?? objects.newBucket()
            shared.bucket = bucket
            shared.prefixes += 1
            return (bucket, shared.prefixes)
        }
        let name = bucket.prefix { $0 != "?" }
        place = "\(name.dropFirst("s3://".count))/test\(number)"
        database = try SharedDatabase()
        self.objects = objects
        options = ["--catalog", database.uri, "--blobs", "\(name)/test\(number)\(bucket.dropFirst(name.count))"]
    }

    deinit { try? objects.remove(place) }

    /// The bytes of an object.
    private func content(of key: String) throws -> [UInt8] { try objects.content(of: place + "/" + key) }

    /// Ends the sessions of servers that were killed, as if their lifetime had passed.
    package func endSessions() throws {
        try database.query("UPDATE onward.node SET alive_until = '-infinity'")
    }

    /// The content of a published file; nil if there is no such file.
    package func published(_ path: String) throws -> [UInt8]? {
        let name = path.split(separator: "/").last ?? ""
        let parent = path.dropLast(min(path.count, name.count + 1))
        func quoted(_ text: some StringProtocol) -> String {
            "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
        }
        let rows = try database.query(
            """
            SELECT n.size, p.object, encode(p.data, 'hex')
            FROM onward.name n LEFT JOIN onward.piece p ON p.blob = n.blob
            WHERE n.parent = \(quoted(parent)) AND n.name = \(quoted(name)) AND NOT n.is_directory ORDER BY p.start
            """)
        guard let size = rows.first.flatMap({ Int($0[0]) }) else { return nil }
        var content: [UInt8] = []
        for row in rows where size > 0 {
            content += row[1].isEmpty ? Self.bytes(hex: row[2]) : try self.content(of: row[1])
        }
        return Array(content.prefix(size))
    }

    /// The paths of the published files and directories.
    package func publishedNames() throws -> [String] {
        try database.query(
            "SELECT CASE parent WHEN '' THEN name ELSE parent || '/' || name END FROM onward.name ORDER BY 1"
        ).map { $0[0] }
    }

    /// The stored bytes of each unfinished upload, by the name of its content.
    package func unfinished() throws -> [String: Int] {
        let rows = try database.query(#"SELECT blob, "offset" FROM onward.upload WHERE phase < 2"#)
        return Dictionary(rows.map { ($0[0], Int($0[1]) ?? 0) }) { $1 }
    }

    package static func bytes(hex: String) -> [UInt8] {
        let digits = Array(hex.utf8)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
        }
    }
}
