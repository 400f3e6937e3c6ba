import Foundation

/// The corpus of httpwg/structured-field-tests, if it is available.
///
/// The corpus is searched at `ONWARD_FIXTURES` (the corpus or its parent directory), then as
/// `shared/fixtures/structured-field-tests` in every directory above this file.
enum Corpus {
    static let absence = "structured-field-tests was not found: set ONWARD_FIXTURES to its path to run its cases"

    static let directory: String? = {
        if let given = ProcessInfo.processInfo.environment["ONWARD_FIXTURES"] {
            return ["\(given)/structured-field-tests", given].first { isCorpus($0) }
        }
        var folder = #filePath[...]
        while let slash = folder.lastIndex(of: "/") {
            folder = folder[..<slash]
            let candidate = "\(folder)/shared/fixtures/structured-field-tests"
            if isCorpus(candidate) { return candidate }
        }
        return nil
    }()

    /// The names of the files whose cases are parsed and then serialized.
    static let parsingFiles: [String] = files(in: "")

    /// The names of the files whose cases are only serialized.
    static let serializingFiles: [String] = files(in: "serialization-tests/")

    static func cases(in file: String) throws -> [CorpusCase] {
        let data = try Data(contentsOf: URL(filePath: "\(directory ?? "")/\(file)"))
        return try (JSONValue(parsing: Array(data)).array ?? []).map(CorpusCase.init)
    }

    private static func isCorpus(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: "\(path)/item.json")
    }

    private static func files(in subfolder: String) -> [String] {
        guard let directory else { return [] }
        let names = try? FileManager.default.contentsOfDirectory(atPath: "\(directory)/\(subfolder)")
        return (names ?? []).filter { $0.hasSuffix(".json") }.sorted().map { subfolder + $0 }
    }
}
