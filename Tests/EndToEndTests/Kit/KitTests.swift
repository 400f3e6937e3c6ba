import FoundationEssentials
import SystemCalls
import TestSupport
import Testing

@Suite("The helpers of these tests")
struct KitTests {
    @Test func base64AgreesWithTheRFC() {
        #expect(Array("foobar".utf8).base64 == "Zm9vYmFy")
        #expect(Array("foob".utf8).base64 == "Zm9vYg==")
        #expect(Array("fooba".utf8).base64 == "Zm9vYmE=")
        #expect([UInt8]().base64 == "")
    }

    @Test func sha256AgreesWithTheStandard() {
        #expect(Array("abc".utf8).sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    @Test func payloadsAreStable() {
        #expect(Payload.bytes(100) == Array(Payload.bytes(1000).prefix(100)))
        #expect(Payload.bytes(100, seed: 2) != Payload.bytes(100, seed: 1))
    }

    @Test(.blocking) func blockingBodiesRunOnThreadsOfTheirOwn() {
        let name = FileManager.default.contents(atPath: "/proc/thread-self/comm")
        #expect(name.map { String(decoding: $0, as: UTF8.self).hasPrefix("blocking-") } == true)
    }

    @Test func aBodyBeyondItsTimeLimitIsReportedAndCanceled() async throws {
        let issues = Monitor<[Bool]>([])
        try await withKnownIssue {
            try await BlockingTrait.run(within: .milliseconds(50)) { try await Task.sleep(for: .seconds(600)) }
        } matching: { issue in
            issues.withLock { $0.append(issue.error is CancellationError) }
            return true
        }
        #expect(issues.withLock { $0 } == [false, true])
    }

    @Test(.blocking) func anEndedProcessIsReported() throws {
        let process = try ChildProcess("/bin/sh", ["-c", "echo hello >&2; exit 7"])
        #expect(try process.awaitEnding() == .exited(7))
        #expect(process.errorOutput == "hello\n")
    }

    @Test func eachTestThatDoesNotRunWithASharedStorageExists() throws {
        let sources = String(#filePath.dropLast("/Kit/KitTests.swift".count))
        var tests: Set<String> = []
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources) where path.hasSuffix("Tests.swift") {
            let text = String(
                decoding: FileManager.default.contents(atPath: sources + "/" + path) ?? Data(), as: UTF8.self)
            let functions = text.matches(of: /func (\w+)\(/).map(\.1)
            for suite in text.matches(of: /(?:struct|class|extension) (\w+)/).map(\.1) {
                tests.formUnion([String(suite)] + functions.map { "\(suite).\($0)" })
            }
        }
        #expect(SharedStorageExceptions.names.filter { !tests.contains($0) } == [])
    }
}
