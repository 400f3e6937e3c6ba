import FoundationEssentials

/// A table of docs/library-settings.md: the settings of a type, and their defaults.
package struct SettingsTable {
    /// The default of each setting as the table states it, by the name of the setting.
    package let defaults: [String: String]

    /// Reads the table below the heading that ends with the name of the type.
    package init(of type: String) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        let text = try String(contentsOf: root.appending(path: "docs/library-settings.md"), encoding: .utf8)
        var defaults: [String: String] = [:]
        var isInTable = false
        for line in text.split(separator: "\n") {
            if line.hasPrefix("## ") { isInTable = line.hasSuffix(": " + type) }
            let cells = line.split(separator: "|").map { $0.filter { $0 != "`" }.trimmingSpaces }
            if isInTable, cells.count == 3, line.hasPrefix("| `") { defaults[cells[0]] = cells[1] }
        }
        self.defaults = defaults
    }

    /// Compares the table with the properties of a value that has all defaults.
    /// - Parameters:
    ///   - value: the value, whose stored properties are compared.
    ///   - names: the public names of properties whose public name differs; `nil`: the property is not public.
    ///   - texts: the settings whose defaults the table describes in words, for the caller to compare.
    /// - Returns: a sentence for each difference.
    package func differences(
        from value: some Any, names: [String: String?] = [:], inWords texts: Set<String> = []
    ) -> [String] {
        var remaining = defaults
        var differences: [String] = []
        for (label, property) in Mirror(reflecting: value).children {
            guard let label, let name = names[label, default: label] else { continue }
            guard let documented = remaining.removeValue(forKey: name) else {
                differences.append("\(name) is not in the table")
                continue
            }
            let actual = Self.text(of: property)
            // A number of seconds has its unit in the table.
            let isEqual = documented == actual || property is any BinaryInteger && documented == actual + " s"
            if !isEqual, !texts.contains(name) {
                differences.append("\(name) is \(actual), and \(documented) in the table")
            }
        }
        return differences + remaining.keys.sorted().map { "the table has \($0), which does not exist" }
    }

    /// The value as the table shows it.
    private static func text(of value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional { return mirror.children.first.map { text(of: $0.value) } ?? "nil" }
        if let duration = value as? Duration { return "\(duration.components.seconds) s" }
        if mirror.displayStyle == .enum, mirror.children.isEmpty { return ".\(value)" }
        if mirror.displayStyle == .collection, mirror.children.isEmpty { return "empty" }
        return "\(value)"
    }
}

extension String {
    fileprivate var trimmingSpaces: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
