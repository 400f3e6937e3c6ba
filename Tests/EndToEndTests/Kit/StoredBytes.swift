import FoundationEssentials
import Glibc

/// A snapshot of everything that a server has written: the files of its data directory, their names, and its log.
struct StoredBytes {
    /// Larger files are content that a test sent; they are skipped.
    private static let maxFileSize = 64 << 20

    private var parts: [(place: String, bytes: [UInt8])]

    init(of root: String, log: String = "") {
        parts = [("the log", Array(log.utf8))]
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
        return parts.filter { Self.contains($0.bytes, text) }.map(\.place)
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
