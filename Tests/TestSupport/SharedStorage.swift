import FoundationEssentials
import SystemCalls

/// The storage that the servers of a test share instead of a data directory: a database that was empty, and an unused
/// prefix of a bucket. Both are removed when this object is released.
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
    /// The options of a server that connects to the database through a proxy with this port.
    package func options(databasePort port: UInt16) -> [String] {
        options.map { $0 == database.uri ? database.uri(port: port) : $0 }
    }

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

    /// Ends the sessions of servers that were killed, as if their lifetime had passed. The next server need not wait until it is
    /// steady.
    package func endSessions() throws {
        try database.query("UPDATE onward.node SET alive_until = '-infinity'")
        try database.query("UPDATE onward.upload SET holder = NULL WHERE phase = 1")
    }

    /// The content of a published file; nil if there is no such file.
    package func published(_ path: String) throws -> [UInt8]? {
        let name = path.split(separator: "/").last ?? ""
        let parent = path.dropLast(min(path.count, name.count + 1))
        let rows = try database.query(
            """
            SELECT n.size, p.object, encode(p.data, 'hex'), p.size
            FROM onward.name n LEFT JOIN onward.piece p ON p.blob = n.blob
            WHERE n.parent = \(Self.quoted(parent)) AND n.name = \(Self.quoted(name)) AND NOT n.is_directory ORDER BY p.start
            """)
        guard let size = rows.first.flatMap({ Int($0[0]) }) else { return nil }
        var content: [UInt8] = []
        for row in rows where size > 0 {
            // A piece can be the beginning of an object.
            let bytes = row[1].isEmpty ? Self.bytes(hex: row[2]) : try self.content(of: row[1])
            content += bytes.prefix(Int(row[3]) ?? 0)
        }
        return content.count == size ? content : nil
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

    /// Creates published directories.
    package func makeDirectories(_ path: String) throws {
        let names = path.split(separator: "/").map(String.init)
        let parents = names.indices.map { names[..<$0].joined(separator: "/") }
        try database.query("SELECT onward.make_directories(\(Self.array(parents)), \(Self.array(names)))")
    }

    /// Creates empty files in a directory.
    /// - Parameter name: the name of a file, as an expression of SQL with the column `number`, which begins at 0.
    package func makeFiles(in directory: String, count: Int, named name: String) throws {
        try makeDirectories(directory)
        try database.query(
            """
            INSERT INTO onward.name (parent, name, is_directory, blob, size, modified, tag)
            SELECT \(Self.quoted(directory)), \(name), false, replace(gen_random_uuid()::text, '-', ''), 0,
                (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint, gen_random_uuid()::text
            FROM generate_series(0, \(count - 1)) AS number
            """)
    }

    /// Publishes a file whose pieces are one object again and again, and other bytes after them.
    /// - Parameter source: a file that consists of one object, which has the size of the file.
    package func repeatObject(of source: String, times: Int, tail: [UInt8], as name: String) throws {
        let hex = tail.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        try database.query(
            """
            WITH source AS (
                SELECT p.size, p.object FROM onward.name n JOIN onward.piece p ON p.blob = n.blob
                WHERE n.parent = '' AND n.name = \(Self.quoted(source))
            ), pieces AS (
                INSERT INTO onward.piece (blob, start, size, object, data)
                SELECT 'repeated', number * s.size, s.size, s.object, NULL
                FROM source s, generate_series(0, \(times - 1)) AS number
                UNION ALL SELECT 'repeated', \(times) * s.size, \(tail.count), NULL, '\\x\(hex)'::bytea FROM source s
                RETURNING size
            )
            INSERT INTO onward.name (parent, name, is_directory, blob, size, modified, tag)
            SELECT '', \(Self.quoted(name)), false, 'repeated', sum(size), 0, 'repeated' FROM pieces
            """)
    }

    /// Removes the bytes of all unfinished uploads from `size` on. The stored offsets are kept.
    package func truncateUnfinished(to size: Int) throws {
        try database.query(
            """
            DELETE FROM onward.piece p USING onward.upload u WHERE u.blob = p.blob AND p.start >= \(size);
            UPDATE onward.piece p SET size = \(size) - p.start, data = substring(p.data for (\(size) - p.start)::integer)
            FROM onward.upload u WHERE u.blob = p.blob AND p.start + p.size > \(size)
            """)
    }

    /// The text as a constant of SQL.
    private static func quoted(_ text: some StringProtocol) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
    }

    private static func array(_ texts: [String]) -> String {
        "ARRAY[\(texts.map(quoted).joined(separator: ", "))]::text[]"
    }

    package static func bytes(hex: String) -> [UInt8] {
        let digits = Array(hex.utf8)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
        }
    }
}
