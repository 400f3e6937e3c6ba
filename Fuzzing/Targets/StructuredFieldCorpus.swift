import Foundation

/// The test cases of the repository httpwg/structured-field-tests. They are read from the directory that the
/// environment variable `ONWARD_FIXTURES` names, or else from `shared/fixtures` in a directory above this file.
enum StructuredFieldCorpus {
    /// Returns the field value of each test case, which can have several lines; empty if there are no test cases.
    static func lines() -> [[UInt8]] {
        guard let directory else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.filter { $0.hasSuffix(".json") }.sorted().flatMap { name -> [[UInt8]] in
            guard let data = FileManager.default.contents(atPath: "\(directory)/\(name)"),
                let cases = try? JSONSerialization.jsonObject(with: data) as? [[String: Any]]
            else { return [] }
            return cases.compactMap { ($0["raw"] as? [String]).map { Array($0.joined(separator: "\n").utf8) } }
        }
    }

    private static var directory: String? {
        var candidates: [String] = []
        if let given = ProcessInfo.processInfo.environment["ONWARD_FIXTURES"] {
            candidates += ["\(given)/structured-field-tests", given]
        }
        var folder = #filePath[...]
        while let slash = folder.lastIndex(of: "/") {
            folder = folder[..<slash]
            candidates.append("\(folder)/shared/fixtures/structured-field-tests")
        }
        return candidates.first { FileManager.default.fileExists(atPath: "\($0)/item.json") }
    }
}
