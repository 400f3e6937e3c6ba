import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The process `onward serve`: its options and its end.
@Suite("The command serve", .serialized, .blocking)
struct ServeTests {
    @Test("SIGTERM and SIGINT end the server within five seconds, with status 0", arguments: [SIGTERM, SIGINT])
    func ends(signal: Int32) throws {
        try withServer { server in
            let idle = try server.connect()
            #expect(try idle.exchange(.get("/readyz")).status == 200)
            server.process.kill(signal)
            #expect(try server.process.awaitEnding(within: .seconds(60)) == .exited(0))
            idle.expectClosed()
        }
    }

    @Test(
        "if an option is wrong, serve ends with 64 and a message, and creates no data directory",
        arguments: [
            ["--nonsense"], ["--max-size"], ["--max-size", "abc"], ["--max-size", "0"], ["--max-size", "-5"],
            ["--listen", "nowhere"],
            ["--listen", ":8080"], ["--log-level", "loud"], ["--durability", "maybe"], ["--cors-origin", "app"],
            ["--max-age", "3x"],
            ["stray"],
        ])
    func wrongOptions(options: [String]) throws {
        let directory = try TemporaryDirectory()
        let process = try ServerProcess.run(["--root", directory.path + "/data"] + options)
        #expect(try process.awaitEnding() == .exited(64))
        #expect(!process.errorOutput.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: directory.path + "/data"))
    }

    @Test("If --cache-control has public or s-maxage without --public-read, serve ends with 64 and names --public-read")
    func sharing() throws {
        let directory = try TemporaryDirectory()
        try TokenFixture.write("anna token-of-anna-0123456789", to: directory.path + "/tokens")
        for value in ["public, max-age=60", "s-maxage=60"] {
            let arguments = [
                "serve", "--root", directory.path + "/data", "--token-file", directory.path + "/tokens",
                "--cache-control", value,
            ]
            try OnwardRun(arguments).expect(64, "--cache-control", "--public-read")
        }
    }

    @Test("the options for files and for the protocol apply to responses")
    func effects() throws {
        let options = [
            "--inline", "--reject-form-data", "--cors-origin", "*", "--cache-control", "Max-Age=60",
            "--announce-without-version", "--require-length", "--min-size", "2",
        ]
        try withServer(options: options) { server in
            #expect(try server.publish([1], as: "f.html").status == 201)
            let file = try server.download("f.html")
            #expect(!file.fields.contains("Content-Disposition"))
            #expect(file.value("Cross-Origin-Resource-Policy") == "cross-origin")
            #expect(file.value("Cache-Control") == "max-age=60")
            let form = Request("PUT", "/files/f", [("Content-Type", "multipart/form-data; boundary=x")], .bytes([1]))
            #expect(try server.exchange(form).status == 415)
            let chunked = Request.creation(.v8, complete: true, .chunks([[1]]))
            #expect(try server.exchange(chunked).status == 411)
            let creation = try server.exchange(.creation(nil, complete: true, .bytes([1, 2])))
            #expect(creation.status == 201)
            #expect(creation.interim.first?.limits?["min-size"] == 2)
        }
    }

    @Test("every option has an environment variable; the command line has precedence")
    func environment() throws {
        try withServer("--max-append-size", "7", environment: ["ONWARD_MAX_SIZE": "2K", "ONWARD_MAX_APPEND_SIZE": "9"])
        { server in
            let limits = try server.exchange(Request("OPTIONS", "*")).limits
            #expect(limits?["max-size"] == 2000)
            #expect(limits?["max-append-size"] == 7)
        }
        let process = try ServerProcess.run([], environment: ["ONWARD_MAX_SIZE": "x"])
        #expect(try process.awaitEnding() == .exited(64))
        #expect(process.errorOutput.contains("ONWARD_MAX_SIZE") || process.errorOutput.contains("max-size"))
    }

    @Test(
        "sizes accept powers of 1000 and of 1024",
        arguments: [("1K", 1000), ("1KiB", 1024), ("2M", 2_000_000), ("3MiB", 3 << 20), ("12345", 12345)])
    func sizes(text: String, value: Int64) throws {
        try withServer("--max-size", text) { server in
            let response = try server.exchange(Request("OPTIONS", "*"))
            #expect(response.limits?["max-size"] == value)
        }
    }

    @Test("beyond --max-connections a client gets no further connection while all of its connections are fast")
    func maxConnections() throws {
        try withServer("--max-connections", "3") { server in
            let kept = try (0..<3).map { _ in try server.connectFast() }
            for connection in kept { #expect(try connection.exchange(.get("/healthz")).status == 200) }
            let further = try server.connect()
            try? further.send(Request.get("/healthz"))
            #expect(throws: WireFailure.self) { try further.readResponse(within: .milliseconds(300)) }
            for connection in kept { #expect(try connection.exchange(.get("/healthz")).status == 200) }
            kept[0].close()
            let served = pollUntil(within: .seconds(60)) { try? server.exchange(.get("/healthz")) }
            #expect(served?.status == 200)
        }
    }
}
