import FoundationEssentials
import Testing

/// The alert rules and the tables of metrics in docs/operating.md and docs/scale.md name existing metrics only.
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
            let shared = names(in: try content(OperatorFiles.directory + "/../docs/scale.md"))
            #expect(alerts.isSubset(of: known.union(shared)), "unknown: \(alerts.subtracting(known.union(shared)))")
            let documented = names(in: try content(OperatorFiles.directory + "/../docs/operating.md"))
            #expect(documented == known, "unknown or missing: \(documented.symmetricDifference(known))")
        }
    }

    @Test(
        "docs/scale.md has every metric that exists only with several servers, and no unknown one",
        .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
    func sharedNames() throws {
        var usual: Set<String> = []
        try withServer { server in usual = families(try server.exchange(.get("/metrics")).text) }
        try withCluster(1) { cluster in
            let known = families(try cluster.nodes[0].exchange(.get("/metrics")).text)
            let documented = names(in: try content(OperatorFiles.directory + "/../docs/scale.md"))
            #expect(documented.isSubset(of: known), "unknown: \(documented.subtracting(known))")
            let added = known.subtracting(usual)
            #expect(added.count > 15 && added.isSubset(of: documented), "missing: \(added.subtracting(documented))")
        }
    }
}
