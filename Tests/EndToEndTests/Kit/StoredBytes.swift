import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// A snapshot of everything that a server has written: the files of its data directory and their names, or the rows of its
/// database, and its log.
struct StoredBytes {
    /// Larger files are content that a test sent; they are skipped.
    private static let maxFileSize = 64 << 20

    private var parts: [(place: String, bytes: [UInt8])]

    init(of server: ServerProcess) {
        parts = [("the log", Array(server.log.utf8))]
        if let shared = server.shared {
            do { parts.append(("the database", Array(try shared.database.dump().utf8))) } catch { Issue.record(error) }
            return
        }
        let root = server.root
        let paths = (try? FileManager.default.subpathsOfDirectory(atPath: root)) ?? []
        parts.append(("the names of files", Array(paths.joined(separator: "\n").utf8)))
        for path in paths {
            let size = (try? FileManager.default.attributesOfItem(atPath: root + "/" + path))?[.size] as? Int ?? 0
            guard size <= Self.maxFileSize, let data = FileManager.default.contents(atPath: root + "/" + path)
            else { continue }
            parts.append((path, Array(data)))
        }
    }

    /// The places that contain `text`: paths below the data directory, or the log.
    func places(of text: String) -> [String] {
        let text = Array(text.utf8)
        let digits = text.flatMap { byte in [byte >> 4, byte & 15].map { Array("0123456789abcdef".utf8)[Int($0)] } }
        return parts.filter { place, bytes in
            Self.contains(bytes, text) || (place == "the database" && Self.contains(bytes, digits))
        }.map(\.place)
    }

    private static func contains(_ bytes: [UInt8], _ text: [UInt8]) -> Bool {
        guard let first = text.first else { return true }
        return bytes.withUnsafeBytes { bytes in
            var start = 0
            while bytes.count - start >= text.count, let base = bytes.baseAddress,
                let found = memchr(base + start, Int32(first), bytes.count - start - text.count + 1)
            {
                if memcmp(found, text, text.count) == 0 { return true }
                start = UnsafeRawPointer(found) - base + 1
            }
            return false
        }
    }
}
