import FoundationEssentials
import Testing

@testable import ConformanceKit

/// Tests of the tables of cases, and of helpers.
@Suite("Cases")
struct SuiteTests {
    private let cases = ServerSuite.cases(for: Profile.versions.map(Profile.interop))

    @Test("IDs are unique, and a case depends only on previous cases")
    func order() {
        var seen: Set<String> = []
        for next in cases {
            #expect(seen.insert(next.id).inserted, "\(next.id) twice")
            for need in next.needs { #expect(seen.contains(need) || need == next.id, "\(next.id) needs \(need)") }
        }
        #expect(cases.count > 200)
    }

    @Test("The group of every case ID is a section of the list, a version, or the section of a rule for all exchanges")
    func sections() {
        let groups = Set(cases.map(\.group)).subtracting(ServerSuite.sections)
        #expect(groups.isSubset(of: ["v3", "v4", "v5", "v6", "v7", "v8", "4.1", "4.1.1", "9110", "9457"]))
        for id in ["4.4/offset-mismatch", "9112/no-host", "14/single", "restart/offset-kept", "v5/append-created"] {
            #expect(cases.contains { $0.id == id })
        }
    }

    @Test("Cases cover existing requirements, and every uncovered requirement of servers has a reason")
    func coverage() {
        let rows = Set(Requirement.server.map(\.id))
        let covered = Set(cases.flatMap(\.covers))
        #expect(covered.subtracting(rows).isEmpty)
        for row in Requirement.server where !covered.contains(row.id) {
            #expect(UncoveredRequirements.reason(for: row.id) != nil, "\(row.id) \(row.level): \(row.text)")
        }
        for row in Requirement.server where covered.contains(row.id) {
            #expect(UncoveredRequirements.reason(for: row.id) == nil, "\(row.id) is covered")
        }
    }

    @Test(
        "Scenarios have unique IDs and cover existing requirements, and every uncovered requirement of clients has a reason"
    )
    func scenarios() {
        let cases = ClientSuite.cases
        #expect(Set(cases.map(\.id)).count == cases.count)
        #expect(Set(ClientRules.cases.map(\.0)).count == ClientRules.Rule.allCases.count)
        for (rule, info) in ClientRules.cases { #expect(rule.rawValue == info.id) }
        let covered = Set(cases.flatMap(\.covers))
        #expect(covered.subtracting(Requirement.client.map(\.id)).isEmpty)
        for row in Requirement.client {
            let reason = UncoveredRequirements.reason(for: row.id)
            #expect((reason == nil) == covered.contains(row.id), "\(row.id) \(row.level): \(row.text)")
        }
        for defect in ClientDefect.allCases {
            #expect(cases.contains { $0.id == defect.detectedBy }, "\(defect)")
        }
        for pattern in ClientKind.browser.obstacles.flatMap(\.cases) {
            #expect(cases.contains { Glob(pattern).matches($0.id) && $0.level != .must }, "\(pattern)")
        }
    }

    @Test("The same seed gives the same random numbers")
    func seeds() {
        var first = SplitMix(state: 7)
        var second = SplitMix(state: 7)
        var other = SplitMix(state: 8)
        let values = (0..<10).map { _ in first.next() }
        #expect(values == (0..<10).map { _ in second.next() })
        #expect(values != (0..<10).map { _ in other.next() })
    }

    @Test("The requirements equal those of Tests/requirements.tsv")
    func table() throws {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Tests/requirements.tsv")
        let lines = try String(contentsOf: source, encoding: .utf8).split(separator: "\n").dropFirst()
        let rows = lines.map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
        func requirements(of role: String) -> [Requirement] {
            rows.filter { $0[1] == role }.map { Requirement(id: $0[0], level: $0[2], section: $0[4], text: $0[3]) }
        }
        #expect(requirements(of: "server") == Requirement.server)
        #expect(requirements(of: "client") == Requirement.client)
    }

    @Test(
        "A pattern matches as in a shell",
        arguments: [
            ("4.4/*", "4.4/append", true), ("4.4/*", "4.5/cancel", false), ("*append", "4.4/append", true),
            ("4.?/cancel", "4.5/cancel", true), ("*", "", true), ("?", "", false), ("a*b*c", "aXbYbc", true),
            ("a*b*c", "aXbYb", false), ("", "a", false),
        ])
    func glob(_ pattern: String, _ text: String, _ matches: Bool) {
        #expect(Glob(pattern).matches(text) == matches)
    }

    @Test("SHA-256 and SHA-512 return the digests of the examples in FIPS 180-4")
    func hashes() {
        func hexadecimal(_ bytes: [UInt8]) -> String {
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        let abc = Array("abc".utf8)
        #expect(
            hexadecimal(SecureHash.sha256(abc)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            hexadecimal(SecureHash.sha256([]))
                == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(
            hexadecimal(SecureHash.sha512(abc))
                == "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f")
        let severalBlocks = [UInt8](repeating: UInt8(ascii: "a"), count: 200)
        #expect(SecureHash.sha256(severalBlocks).count == 32 && SecureHash.sha512(severalBlocks).count == 64)
    }

    @Test(
        "A Location is resolved against the request's URL",
        arguments: [
            ("/u/1", "http://a:80/u/1"), ("1", "http://a:80/files/1"), ("../u/1", "http://a:80/u/1"),
            ("./1", "http://a:80/files/1"), ("http://b:81/u", "http://b:81/u"), ("//b/u", "http://b/u"),
            ("?x", "http://a:80/files/?x"), ("/a/./b/../c", "http://a:80/a/c"), ("/u#f", "http://a:80/u"),
            ("https://a/u", "https://a/u"),
        ])
    func locations(_ location: String, _ url: String) throws {
        let base = try #require(Endpoint("http://a:80/files/"))
        #expect(base.resolving(location)?.url == url)
    }

    @Test(
        "An unsupported URL is rejected", arguments: ["", "files", "https://", "http://", "http://a:0/", "ftp://a/"])
    func noURL(_ text: String) {
        #expect(Endpoint(text) == nil)
    }

    @Test("An invalid head is parsed, and its deviations are reported")
    func anomalies() throws {
        let right = try ParsedHead(Array("HTTP/1.1 204 No Content\r\nA: b\r\n\r\n".utf8)[...])
        #expect(right.anomalies.isEmpty && right.status == 204 && right.fields["a"] == "b")
        let wrong = try ParsedHead(Array("HTTP/1.1 200\nA : b\n c\nnonsense\n\n".utf8)[...])
        #expect(wrong.anomalies.count == 5)
        #expect(wrong.fields["A"] == "b")
        #expect(throws: WireFailure.self) { try ParsedHead(Array("HTTP/2 200\r\n\r\n".utf8)[...]) }
    }
}
