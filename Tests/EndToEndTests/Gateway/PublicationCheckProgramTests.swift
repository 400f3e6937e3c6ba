import ConformanceKit
import FoundationEssentials
import Glibc
import HTTPSemantics
import TestSupport
import Testing

/// A check of files by a program before they are published.
@Suite("Gateway: check by a program", .blocking)
struct GatewayCheckProgramTests {
    private typealias Fixture = CheckFixture
    private static let content = Fixture.content
    private static let infected = Array("x EICAR-STANDARD-ANTIVIRUS-TEST-FILE y".utf8)
    /// A scanner with the interface of clamscan(1).
    private static let scanner = """
        if grep -q EICAR-STANDARD-ANTIVIRUS-TEST-FILE; then echo "stdin: Eicar-Test-Signature FOUND"; exit 1; fi
        echo "stdin: OK"
        """

    private func complete(_ server: ServerProcess, _ location: String) throws -> Response {
        try GatewayUploadFixture.complete(server, location, at: Self.content.count)
    }

    @Test("a scanner accepts a file and refuses another, plain and resumable")
    func scanner() throws {
        try Fixture.withProgram(Self.scanner) { server, _ in
            for isResumable in [false, true] {
                func put(_ path: String, _ content: [UInt8]) throws -> Response {
                    try server.exchange(
                        isResumable
                            ? .creation(.v8, "PUT", path, complete: true, .bytes(content))
                            : Request("PUT", path, [], .bytes(content)))
                }
                let refused = try put("/files/bad", Self.infected)
                #expect(refused.status == 422 && refused.problem?.code == "content-refused", "\(refused)")
                #expect(refused.text.contains("stdin: Eicar-Test-Signature FOUND"))
                #expect(try put("/files/good\(isResumable)", Self.content).status == 201)
                #expect(server.published("good\(isResumable)") == Self.content)
            }
            #expect(Set(server.publishedNames()) == ["goodfalse", "goodtrue"])
            let location = try server.begin(.v8, "/files/bad", Self.infected)
            let refused = try GatewayUploadFixture.complete(server, location, at: Self.infected.count)
            for name in ["goodtrue", "goodfalse"] {
                #expect(try server.exchange(Request("DELETE", "/files/" + name)).status == 204)
            }
            try Fixture.expectRefused(refused, server, location, detail: "FOUND", length: Self.infected.count)
        }
    }

    @Test("a document that is nested deeply is a text, and its code and control characters add no line to the log")
    func hostileDocuments() throws {
        let script = """
            case $ONWARD_CHECK_TARGET in
            */deep) printf '{"status":409,"t":'; printf '[%.0s' $(seq 2000); printf ']%.0s' $(seq 2000); echo '}';;
            */code) printf '%s' '{"status":409,"code":"x\\nFORGED LINE"}';;
            */path) printf '%s' '{"target":"/files/\\nFORGED LINE/"}'; exit 0;;
            esac
            exit 1
            """
        try Fixture.withProgram(script) { server, _ in
            func put(_ path: String) throws -> Response {
                try server.exchange(.creation(.v8, "PUT", path, complete: true, .bytes(Self.content)))
            }
            #expect(try put("/files/deep").status == 422)
            #expect(try put("/files/code").status == 409)
            #expect(try put("/files/path").status == 503)
            try server.awaitLog("PUT /files/path 503")
            #expect(!server.log.split(separator: "\n").contains { $0.hasPrefix("FORGED") }, "\(server.log)")
            #expect(server.log.contains("PUT /files/code 409 other"), "\(server.log)")
        }
    }

    @Test("the program gets the file as its input, read-only, and the description in its environment")
    func input() throws {
        let script = """
            env > $D/environment
            readlink /proc/self/fd/0 > $D/link
            cat /proc/self/fd/0 > $D/by-path
            cat /dev/stdin > $D/by-device
            (echo x >&0) 2> /dev/null && echo writable > $D/writable
            ls /proc/self/fd | wc -l > $D/descriptors
            cat > $D/copy
            """
        try Fixture.withProgram(script) { server, directory in
            func read(_ name: String) -> [UInt8]? {
                FileManager.default.contents(atPath: directory.path + "/" + name).map { Array($0) }
            }
            var request = Request.creation(.v8, "POST", "/files/in%20box/", complete: true, .bytes(Self.content))
            request.fields += [
                ("Content-Type", "text/x-test; a=\"b c\""), ("Content-Disposition", "inline; filename=n"),
                ("Repr-Digest", Self.content.digestField()), ("Cookie", "secret=1"),
            ]
            let response = try server.exchange(request)
            #expect(response.status == 201, "\(response)")
            // With a shared storage the input is a pipe, which can be read only once.
            let copies = ["by-path", "by-device", "copy"].map { read($0) ?? [] }
            let other = server.shared == nil ? Self.content : []
            #expect(copies == [Self.content, other, other])
            #expect(read("writable") == nil)
            let lines = Set(
                String(decoding: read("environment") ?? [], as: UTF8.self).split(separator: "\n").map(String.init))
            let expected = [
                "METHOD=POST", "TARGET=/files/in%20box/", "LENGTH=100000", "CONTENT_TYPE=text/x-test; a=\"b c\"",
                "CONTENT_DISPOSITION=inline; filename=n", "DIGEST=\(Self.content.digestField())",
            ]
            for line in expected { #expect(lines.contains("ONWARD_CHECK_" + line), "\(lines)") }
            #expect(lines.contains { $0.hasPrefix("ONWARD_CHECK_UPLOAD=") && $0.utf8.count == 20 + 32 }, "\(lines)")
            #expect(lines.count { $0.hasPrefix("ONWARD_") } == 7, "\(lines)")
            #expect(server.published("in box/n") == Self.content)
        }
    }

    @Test("bytes that were not acknowledged before a crash are not part of the file that is checked")
    func leftover() throws {
        try Fixture.withProgram("cat > $D/copy") { server, directory in
            let location = try server.begin(.v8, "/files/file.bin", Array(Self.content[..<1000]))
            let connection = try server.connect()
            try connection.send(.append(.v8, location, at: 1000, complete: false, .declared(90_000)))
            try connection.send(Self.content[1000..<60_000])
            if server.shared == nil {
                #expect(eventually(within: .seconds(30)) { server.unfinished.values.contains { $0 >= 60_000 } })
            } else {
                // Bytes that are not acknowledged cannot be observed in a shared storage.
                try connection.awaitAcknowledgment()
            }
            try server.crash()
            try server.restart()
            let offset = Int(try #require(try server.retrieve(location).offset))
            let end = offset + 10
            let response = try server.exchange(
                .append(.v8, location, at: offset, complete: true, .bytes(Array(Self.content[offset..<end]))))
            #expect(response.status == 201, "\(response)")
            let copy = FileManager.default.contents(atPath: directory.path + "/copy").map { Array($0) }
            #expect(copy == Array(Self.content[..<end]))
            #expect(server.published("file.bin") == copy)
        }
    }

    // MARK: Verdicts

    @Test(
        "an end that is no verdict: the file waits, and is checked again when the client repeats its request",
        arguments: [
            ("exit 2", "exited with status 2"),
            ("echo broken >&2; exit 1", "exited with status 1: broken; a refusal needs"),
            ("kill -9 $$", "was ended by signal 9"), ("echo '{\"target\": 5}'", "its output is not a JSON object"),
            ("echo '{\"target\"'", "its output is not a JSON object"),
            ("echo '{\"target\": \"/etc/x\"}'", "not a valid path of a file"),
            ("echo '{'; head -c 100000 /dev/zero", "its output is not a JSON object"),
            ("exit 127", "exited with status 127"),
        ])
    func noVerdict(script: String, reason: String) throws {
        try Fixture.withProgram("if [ -e $D/works ]; then exit 0; fi\n\(script)") { server, directory in
            let plain = try server.exchange(Request("PUT", "/files/p", [], .bytes([1, 2])))
            #expect(plain.status == 503 && plain.value("Retry-After") == "5", "\(plain)")
            Fixture.expectNoBytes(server)
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            Fixture.expectUnchecked(try complete(server, location), server)
            try GatewayUploadFixture.expectWaiting(server, location)
            try Fixture.expectLog(server, reason)
            _ = try directory.file("works", [])
            #expect(try complete(server, location).status == 201)
            #expect(server.published("file.bin") == Self.content)
        }
    }

    @Test(
        "a refusal with a problem document or a text on standard output",
        arguments: [
            (#"{"status":403,"title":"No","code":"virus-found","count":3}"#, 403, "virus-found", #""count":3"#),
            (#"{"detail":"too wide","status":200}"#, 422, "content-refused", "too wide"),
            (#"{"status":429}"#, 422, "content-refused", "422"),
            ("two\n lines\t ", 422, "content-refused", "two lines"),
            ("{ not JSON", 422, "content-refused", "{ not JSON"),
        ])
    func refused(output: String, status: Int, code: String, detail: String) throws {
        try Fixture.withProgram("cat <<'END'\n\(output)\nEND\nexit 1") { server, _ in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            let response = try complete(server, location)
            try Fixture.expectRefused(response, server, location, status: status, code: code, detail: detail)
        }
    }

    @Test("a program can name another path")
    func target() throws {
        try Fixture.withProgram("echo '{\"target\": \"/files/clean/\"}'") { server, _ in
            let response = try server.exchange(Request("PUT", "/files/in/a", [], .bytes(Self.content)))
            #expect(response.status == 201 && response.value("Location") == "/files/clean/a", "\(response)")
            #expect(server.published("clean/a") == Self.content)
        }
    }

    // MARK: Limits

    @Test("a program that ignores SIGTERM is killed after the time limit, with the processes that it has started")
    func timeLimit() throws {
        let script = """
            trap '' TERM
            sh -c 'trap "" TERM; sleep 1000' &
            echo $! > $D/child
            while true; do sleep 1; done
            """
        try Fixture.withProgram(script, ",timeout=1s") { server, directory in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            let begun = ContinuousClock.now
            Fixture.expectUnchecked(try complete(server, location), server)
            #expect(ContinuousClock.now - begun < .seconds(20))
            try Fixture.expectLog(server, "exceeded the time limit")
            let child = try #require(
                FileManager.default.contents(atPath: directory.path + "/child").map {
                    String(decoding: $0, as: UTF8.self)
                })
            #expect(awaitEnd(of: try #require(pid_t(child.filter(\.isNumber)))))
        }
    }

    @Test("an endless output needs no memory")
    func endless() throws {
        try Fixture.withProgram("yes infected; exit 1", ",timeout=1s") { server, _ in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            Fixture.expectUnchecked(try complete(server, location), server)
            #expect(try #require(server.process.peakResidentBytes()) < 150_000_000)
        }
    }

    @Test("a stop of the server ends the program, and the file is checked again")
    func stop() throws {
        let script = "if [ -e $D/begun ]; then exit 0; fi; touch $D/begun; trap '' TERM; while true; do sleep 1; done"
        try Fixture.withProgram(script, options: ["--drain-timeout", "0s"]) { server, directory in
            let location = try server.begin(.v8, "/files/file.bin", Self.content)
            let client = try server.connect()
            try client.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            #expect(
                eventually(within: .seconds(30)) { FileManager.default.fileExists(atPath: directory.path + "/begun") })
            let begun = ContinuousClock.now
            #expect(try server.stop() == .exited(0))
            #expect(ContinuousClock.now - begun < .seconds(5))
            try server.restart()
            try GatewayUploadFixture.expectWaiting(server, location)
            #expect(try complete(server, location).status == 201)
            #expect(server.published("file.bin") == Self.content)
        }
    }

    // MARK: The start

    @Test(
        "mistakes of --check are errors at the start",
        arguments: [
            ("/no/such/program", "is not a program that this user can run"),
            ("/etc/passwd", "is not a program that this user can run"),
            ("/tmp", "is not a program that this user can run"),
            ("check", "'check' is not a destination"), ("/bin/true,timeout=0s,max=0", "'timeout=0s'"),
            ("/bin/true,timeout=0s,max=0", "'max=0'"), ("/bin/true,retry=1s", "'retry=1s' is not a setting of a check"),
            ("/bin/true,max=1,max=2", "max is given twice"), ("", "give the absolute path"),
        ])
    func mistakes(value: String, message: String) throws {
        let directory = try TemporaryDirectory()
        let process = try ServerProcess.run(["--root", directory.path + "/data", "--check", value])
        #expect(try process.awaitEnding() == .exited(64))
        #expect(process.errorOutput.contains(message), "\(process.errorOutput)")
    }

    @Test("the option has an environment variable")
    func environment() throws {
        let directory = try TemporaryDirectory()
        let path = try Fixture.program(Self.scanner, in: directory)
        try withServer(environment: ["ONWARD_CHECK": path]) { server in
            let response = try server.exchange(Request("PUT", "/files/bad", [], .bytes(Self.infected)))
            #expect(response.status == 422, "\(response)")
        }
    }
}

/// Kills the server before each of the operations on files with which it publishes a file that was checked.
@Suite(
    "Gateway: killed at every step of a check", .blocking,
    .enabled(if: FileOperations.isPossible, "needs a compiler for C"))
struct GatewayCheckKillTests {
    /// Kills the server at every operation from the request that completes the upload to its response, restarts it, and
    /// repeats the request until its response is final.
    private func kill(
        by response: (String, [(String, String)], String), _ check: (ServerProcess, Response) throws -> Void
    ) throws {
        let content = Array(Payload.bytes(20_000))
        var kills = 0
        var numbers: [Int] = []
        // The first server is not killed.
        var number: Int?
        var index = 0
        repeat {
            let note = Comment(rawValue: "killed at operation \(number ?? 0)")
            let endpoint = try CheckFixture.responses((response.0, response.1, response.2))
            let place = try KillableServer(
                ["--check", CheckFixture.destination(endpoint)], killAt: number)
            let location = try place.server.begin(.v8, "/files/file.bin", Array(content[..<10_000]))
            try place.beginCounting()
            var final: Response?
            do {
                final = try place.server.exchange(
                    .append(.v8, location, at: 10_000, complete: true, .bytes(Array(content[10_000...]))))
                try place.server.crash()
            } catch is WireFailure {
                #expect(try place.awaitKill())
                kills += 1
            }
            if number == nil { numbers = KillableServer.numbers(of: place.operations) }
            try place.restart()
            for _ in 0..<10 {
                let state = try place.server.retrieve(location)
                let offset = Int(state.offset ?? Int64(content.count))
                let answer = try place.server.exchange(
                    .append(.v8, location, at: offset, complete: true, .bytes(Array(content[offset...]))))
                guard answer.complete == true else { continue }
                if let final { #expect(final.status == answer.status, note) }
                final = answer
                break
            }
            try check(place.server, try #require(final, note))
            // The endpoint is called again only if the verdict was not stored.
            #expect(1...2 ~= endpoint.requests.count, note)
            #expect(endpoint.requests.allSatisfy { $0.content == content && $0.isComplete })
            number = index < numbers.count ? numbers[index] : nil
            index += 1
        } while number != nil
        #expect(numbers.count > 5 && KillableServer.areEnough(kills, of: numbers), "\(kills) kills at \(numbers)")
    }

    @Test("an accepted file appears once, with all its bytes, under the path of the verdict")
    func accepted() throws {
        try kill(by: ("200 OK", [("Onward-Target", "/files/clean/y")], "")) { server, response in
            #expect(response.status == 201 && response.value("Location") == "/files/clean/y", "\(response)")
            #expect(server.published("clean/y") == Array(Payload.bytes(20_000)))
            #expect(server.publishedNames().sorted() == ["clean", "clean/y"])
        }
    }

    @Test("a refused file never appears")
    func refused() throws {
        try kill(by: ("422 No", [("Content-Type", "text/plain")], "virus")) { server, response in
            #expect(response.status == 422 && response.text.contains("virus"), "\(response)")
            CheckFixture.expectNoFile(server)
            CheckFixture.expectNoBytes(server)
        }
    }
}
