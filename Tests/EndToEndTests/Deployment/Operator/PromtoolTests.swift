import ConformanceKit
import FoundationEssentials
import TestSupport
import Testing

/// Prometheus' own tool checks our metrics and alert rules. `make test-deployment` installs it.
@Suite(
    "promtool", .enabled(if: ProcessInfo.processInfo.environment["ONWARD_DEPLOYMENT"] == "1"),
    .blocking)
struct PromtoolTests {
    /// Runs promtool with the content of a file as its standard input.
    private func promtool(_ arguments: String, input: String = "/dev/null") throws {
        let command = "exec promtool \(arguments) < '\(input)' >&2"
        let process = try ChildProcess("/bin/sh", ["-c", command])
        let ending = try process.awaitEnding(within: .seconds(60))
        #expect(ending == .exited(0), "promtool \(arguments): \(process.errorOutput)")
    }

    @Test("promtool reports no problem in /metrics, of a new server and of one that has handled requests")
    func metrics() throws {
        try withServer { server in
            let file = server.directory.path + "/metrics"
            func check() throws {
                let text = try server.exchange(.get("/metrics")).content
                #expect(FileManager.default.createFile(atPath: file, contents: Data(text)))
                try promtool("check metrics", input: file)
            }
            try check()
            let location = try server.begin(.v8, "/files/f", [1, 2])
            #expect(try server.exchange(.append(.v8, location, at: 9, complete: true, .bytes([1]))).status == 409)
            #expect(try server.exchange(.append(.v8, location, at: 2, complete: true, .bytes([1]))).status == 201)
            _ = try server.metrics { $0.requests == 3 }
            try check()
        }
    }

    @Test("promtool reports no problem in /metrics of a server with a shared storage")
    func sharedMetrics() throws {
        try withCluster(1) { cluster in
            let node = cluster.nodes[0]
            #expect(try node.exchange(Request("PUT", "/files/f", [], .bytes([1]))).status == 201)
            let file = node.directory.path + "/metrics"
            let text = try node.exchange(.get("/metrics")).content
            #expect(FileManager.default.createFile(atPath: file, contents: Data(text)))
            try promtool("check metrics", input: file)
        }
    }

    @Test("promtool accepts the configuration in docs/operating.md")
    func configuration() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/prometheus.yml"
        let text = try DocumentBlock.content(in: "docs/operating.md", containing: "scrape_configs:")
        #expect(FileManager.default.createFile(atPath: file, contents: Data(text.utf8)))
        // Without this option promtool also expects the file with the token.
        try promtool("check config --syntax-only '\(file)'")
    }

    @Test("promtool accepts the alert rules, and the tests of the alert rules pass", arguments: ["check", "test"])
    func alerts(command: String) throws {
        let file = command == "check" ? "alerts.yml" : "alerts-test.yml"
        try promtool("\(command) rules '\(OperatorFiles.directory)/\(file)'")
    }
}
