import Foundation

extension PartialFile {
    static let suffix = ".part"
    /// Bytes that a name has at most on Linux.
    private static let longestName = 255
    private static let identifierLength = 36

    /// A new name: `.<name>.<UUID>.part` beside a file, `<UUID>.part` in the storage directory.
    static func name(for destinationName: String?) -> String {
        name(for: destinationName, identifier: UUID())
    }

    static func isName(_ name: String, for destinationName: String?) -> Bool {
        let identifier = name.dropLast(suffix.count).suffix(identifierLength)
        guard let identifier = UUID(uuidString: String(identifier)) else { return false }
        return name == self.name(for: destinationName, identifier: identifier)
    }

    private static func name(for destinationName: String?, identifier: UUID) -> String {
        guard var stem = destinationName else { return identifier.uuidString + suffix }
        while stem.utf8.count > longestName - identifierLength - suffix.utf8.count - 2 { stem.removeLast() }
        return ".\(stem).\(identifier.uuidString)\(suffix)"
    }

    /// What stands behind the last slash.
    static func lastComponent(_ path: String) -> String {
        path.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) ?? ""
    }
}
