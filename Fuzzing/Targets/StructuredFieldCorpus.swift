import Foundation

/// The cases of httpwg/structured-field-tests, if they are available: in the directory of `ONWARD_FIXTURES`, or in
/// `shared/fixtures` of a folder above this one.
enum StructuredFieldCorpus {
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
