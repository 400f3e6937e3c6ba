import Foundation
import SystemCalls

/// The names of partial files.
enum PartialFileName {
    static let suffix: FilePath = ".part"
    /// The maximum length of a name on Linux, in bytes.
    private static let maxNameLength = 255
    private static let identifierLength = 36
    /// The maximum number of bytes of the destination's name in the name of its partial file.
    private static let maxStemLength = maxNameLength - identifierLength - suffix.bytes.count - 2

    /// A new name: `.<name>.<UUID>.part` in the directory of the destination, or `<UUID>.part` in the storage directory if
    /// there is no destination name. Only the beginning of a name that is too long is used.
    static func make(for destinationName: FilePath?) -> FilePath {
        let identifier = FilePath(UUID().uuidString)
        guard let destinationName else { return identifier + suffix }
        return name(stem: shortened(destinationName), identifier)
    }

    /// Whether ``make(for:)`` of this or an earlier version can have returned this name.
    static func isValid(_ name: FilePath, for destinationName: FilePath?) -> Bool {
        let identifier = FilePath(name.bytes.dropLast(suffix.bytes.count).suffix(identifierLength))
        guard let text = identifier.text, UUID(uuidString: text)?.uuidString == text else { return false }
        guard let destinationName else { return name == identifier + suffix }
        let stem = FilePath(name.bytes.dropFirst().dropLast(identifierLength + suffix.bytes.count + 1))
        // Earlier versions cut long names at other places.
        let fits = destinationName.bytes.count <= maxStemLength
        guard fits ? stem == destinationName : destinationName.bytes.starts(with: stem.bytes) else { return false }
        return name == self.name(stem: stem, identifier) && name.bytes.count <= maxNameLength
    }

    private static func name(stem: FilePath, _ identifier: FilePath) -> FilePath {
        "." + stem + "." + identifier + suffix
    }

    /// The name is cut between two characters of UTF-8, because some file systems accept only names in valid UTF-8.
    private static func shortened(_ name: FilePath) -> FilePath {
        guard name.bytes.count > maxStemLength else { return name }
        let isContinuation: (UInt8) -> Bool = { $0 & 0xC0 == 0x80 }
        let start = name.bytes[...maxStemLength].lastIndex { !isContinuation($0) } ?? maxStemLength
        return FilePath(name.bytes[..<start])
    }
}
