import PostgreSQL

/// The settings of the database server without which a crash of its machine can lose committed transactions. A server of
/// the cluster cannot set them for its own transactions, as it does with `synchronous_commit`, and does not require them,
/// because some database services are safe without them.
struct CrashSafety {
    private static let effects = [
        "fsync": "a crash of the machine of the database can lose acknowledged bytes",
        "full_page_writes":
            "a crash of the machine of the database can damage it, unless its file system writes pages atomically",
    ]

    /// The settings that were off at the last query.
    private var off: Set<String> = []

    /// - Parameter names: the names of the settings that are off, with spaces between them; see ``ClusterSQL/settingsOff``.
    /// - Returns: these settings, in the same order, each with what can happen.
    static func findings(_ names: String?) -> [(setting: String, effect: String)] {
        (names ?? "").split(separator: " ").map(String.init).map { ($0, effects[$0] ?? "") }
    }

    /// Records the result of a query for the settings that are off.
    /// - Returns: the lines for the log if that has changed.
    mutating func observed(_ names: String?) -> [ClusterObservation.Note] {
        let findings = Self.findings(names)
        let before = off
        off = Set(findings.map(\.setting))
        return findings.filter { !before.contains($0.setting) }.map {
            .init(isProblem: true, text: "\($0.setting) is off in the database server: \($0.effect)")
        }
            + before.subtracting(off).sorted().map {
                .init(isProblem: false, text: "\($0) is on again in the database server")
            }
    }
}
