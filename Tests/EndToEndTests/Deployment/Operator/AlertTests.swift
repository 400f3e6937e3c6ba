import FoundationEssentials
import Testing

/// The alert rules and the table of metrics in docs/operating.md name existing metrics only.
@Suite("Alert rules", .blocking)
struct AlertTests {
    private static let suffixes = ["_bucket", "_sum", "_count"]

    /// The names of our metrics in a text, without the suffixes of a histogram's samples.
    private func names(in text: String) -> Set<String> {
        let words = text.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }.map(String.init)
        return Set(
            // In the name of a package the version follows the prefix.
            words.filter { $0.hasPrefix("onward_") && !$0.hasPrefix("onward_0") }.map { word in
                Self.suffixes.first { word.hasSuffix($0) }.map { String(word.dropLast($0.count)) } ?? word
            })
    }

    private func families(_ text: String) -> Set<String> {
        Set(
            text.split(separator: "\n").filter { $0.hasPrefix("# TYPE onward_") }
                .map { String($0.split(separator: " ")[2]) })
    }

    private func content(_ path: String) throws -> String {
        String(decoding: try #require(FileManager.default.contents(atPath: path)), as: UTF8.self)
    }

    @Test("Every metric in alerts.yml and in docs/operating.md exists, and docs/operating.md has all of them")
    func names() throws {
        // Some metrics exist only if events are delivered.
        try withServer("--events", "/bin/true") { server in
            let known = families(try server.exchange(.get("/metrics")).text)
            #expect(known.count > 25)
            let alerts = names(in: try content(OperatorFiles.directory + "/alerts.yml"))
            #expect(!alerts.isEmpty)
            #expect(alerts.isSubset(of: known), "unknown: \(alerts.subtracting(known))")
            let documented = names(in: try content(OperatorFiles.directory + "/../docs/operating.md"))
            #expect(documented == known, "unknown or missing: \(documented.symmetricDifference(known))")
        }
    }
}
