/// A row of the table of requirements.
package struct Requirement: Sendable, Hashable {
    package let id: String
    /// `MUST`, `SHOULD` or `MAY`.
    package let level: String
    package let section: String
    package let text: String

    /// The rows whose role is the server.
    package static let server = rows(ServerRequirements.table)
    /// The rows whose role is the client.
    package static let client = rows(ClientRequirements.table)

    private static func rows(_ table: String) -> [Requirement] {
        table.split(separator: "\n").map { line in
            let columns = line.split(separator: "|", maxSplits: 3, omittingEmptySubsequences: false).map(String.init)
            return Requirement(id: columns[0], level: columns[1], section: columns[2], text: columns[3])
        }
    }
}
