import ConformanceKit
import FoundationEssentials
import SystemCalls
import Testing

/// Problems that the server logs at its start, before users notice them.
@Suite("Notes at the start", .blocking)
struct StartNotesTests {
    /// The log of a server with these tokens, once it contains all of `words`.
    private func log(_ tokens: String, until words: String...) throws -> String {
        let fixture = try TokenFixture(tokens)
        return try fixture.server.process.awaitErrorOutput { text in
            words.allSatisfy { text.contains($0) } ? text : nil
        }
    }

    @Test("At its start the server logs the number of tokens; if there are none, it logs that requests are rejected")
    func noToken() throws {
        for tokens in ["", "# none yet\n"] {
            _ = try log(
                tokens, until: "/tokens was read: 0 tokens\n", "warning: ", "requests that need a token are rejected\n")
        }
    }

    @Test("At its start the server logs the names of tokens that can be guessed, and never the tokens")
    func shortToken() throws {
        let text = try log(
            "anna token-of-anna-0001\ncarl exactly16-bytes-\nben s3cr3t\n", until: "/tokens was read: 3 tokens\n",
            "a token of ben ")
        #expect(!text.contains("a token of anna") && !text.contains("a token of carl"))
        for token in ["token-of-anna", "s3cr3t", "exactly16"] { #expect(!text.contains(token)) }
    }

    @Test(
        "At its start the server warns if the system allows fewer open files than --max-connections needs",
        .enabled(if: (ProcessControl.raiseDescriptorLimit() ?? .max) < 2_000_100))
    func openFiles() throws {
        try withServer("--max-connections", "1000000") { server in
            _ = try server.process.awaitErrorOutput { text in
                let words = ["warning: ", " open files", " 2000100", "LimitNOFILE="]
                return words.allSatisfy { text.contains($0) } ? true : nil
            }
        }
        try withServer { server in
            // The access log is written after the notes at the start.
            #expect(try server.exchange(.get("/healthz")).status == 200)
            let text = try server.awaitLog("/healthz")
            #expect(!text.contains("open files"))
        }
    }

    @Test("Too little free space is logged at the start and with each refusal, with directory and numbers")
    func space() throws {
        try withServer("--min-free", "900T") { server in
            let words = [server.root, "900000000000000", "--min-free"]
            func awaitLine(_ severity: String) throws {
                _ = try server.process.awaitErrorOutput { text in
                    text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().contains { line in
                        line.contains(severity) && words.allSatisfy { line.contains($0) }
                    } ? true : nil
                }
            }
            try awaitLine("warning: ")
            let response = try server.exchange(Request("PUT", "/files/g.bin", [], .bytes([1])))
            #expect(response.status == 507 && !response.text.contains(server.root))
            try awaitLine("error: ")
        }
    }
}
