import ConformanceKit
import Foundation
import SystemCalls
import TestSupport
import Testing

@Suite(
    "Downloads that are redirected to the object storage", .blocking,
    .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct RedirectionTests {
    private static let content = BytePool.repeated(0..<12_000_000)
    private static let fields = [("Authorization", "Bearer reader-token-0123456789")]
    private static let photo = "photo%20%E2%82%AC.jpg"

    /// Requests a URL of the storage with curl, without fields of the original request.
    private func fetch(_ url: String, _ options: [String] = []) throws -> (head: [String], content: [UInt8]) {
        let directory = try TemporaryDirectory()
        let (head, body) = (directory.path + "/head", directory.path + "/body")
        let curl = try ChildProcess("/usr/bin/curl", ["-sS", "-D", head, "-o", body] + options + [url])
        try #require(try curl.awaitEnding() == .exited(0), "\(curl.errorOutput)")
        let text = textOfFile(head)
        let content = FileManager.default.contents(atPath: body) ?? Data()
        return (text.split(separator: "\r\n").map(String.init), Array(content))
    }

    private func put(_ node: ServerProcess, _ name: String, _ count: Int, _ type: String) throws {
        var request = Request("PUT", "/files/" + name, [("Content-Type", type)], .bytes(Array(Self.content[..<count])))
        request.fields += [("Authorization", "Bearer writer-token-0123456789")]
        #expect(try node.exchange(request).status == 201)
    }

    private func get(_ node: ServerProcess, _ name: String, _ fields: [(String, String)] = Self.fields) throws
        -> Response
    {
        try node.exchange(Request("GET", "/files/" + name, fields))
    }

    @Test("a file of one object gets 307 to a URL with its type and name; other requests are answered by the server")
    func redirections() throws {
        let directory = try TemporaryDirectory()
        let tokens = try directory.file(
            "tokens", Array("reader reader-token-0123456789 read\nwriter writer-token-0123456789\n".utf8))
        try withCluster(1, ["--token-file", tokens, "--redirect-downloads", "--log-level", "debug"]) { cluster in
            let node = cluster.nodes[0]
            try put(node, Self.photo, 300_000, "image/jpeg")
            try put(node, "page.html", 200_000, "text/html; charset=utf-8")
            try put(node, "small.txt", 1_000, "text/plain")
            try put(node, "large.bin", 12_000_000, "application/octet-stream")

            let response = try get(node, Self.photo)
            #expect(response.status == 307 && response.content.isEmpty, "\(response)")
            #expect(response.fields["Cache-Control"] == "no-store" && response.fields["ETag"] == nil)
            let url = try #require(response.fields["Location"])
            #expect(url.hasPrefix("http://127.0.0.1:\(cluster.storage.port)/") && url.contains("X-Amz-Expires=60&"))
            let file = try fetch(url)
            #expect(file.head.first == "HTTP/1.1 200 OK" && file.content == Array(Self.content[..<300_000]))
            #expect(file.head.contains("Content-Type: image/jpeg"), "\(file.head)")
            let disposition =
                "Content-Disposition: inline; filename=\"photo _.jpg\"; filename*=UTF-8''photo%20%E2%82%AC.jpg"
            #expect(file.head.contains(disposition), "\(file.head)")
            let part = try fetch(url, ["-r", "1000-1999"])
            #expect(
                part.head.first?.hasPrefix("HTTP/1.1 206") == true && part.content == Array(Self.content[1000..<2000]))
            // curl follows the redirection, and does not send the token to the other server.
            let followed = try fetch(
                node.url("/files/" + Self.photo),
                ["-L", "-r", "-500", "-H", "Authorization: Bearer reader-token-0123456789"])
            #expect(followed.content == Array(Self.content[299_500..<300_000]), "\(followed.head)")

            let token = try directory.file("token", Array("reader-token-0123456789\n".utf8))
            let run = try OnwardRun(
                [
                    "get", node.url("/files/" + Self.photo), "-o", directory.path + "/copy",
                    "--token-file", token, "--quiet",
                ], environment: ["HOME": directory.path])
            #expect(run.ending == .exited(0), "\(run.output)")
            #expect(
                FileManager.default.contents(atPath: directory.path + "/copy").map { Array($0) }
                    == Array(Self.content[..<300_000]))

            // An active type is an attachment there, too.
            let page = try fetch(try #require(try get(node, "page.html").fields["Location"]))
            #expect(page.head.contains("Content-Type: text/html; charset=utf-8"), "\(page.head)")
            #expect(page.head.contains("Content-Disposition: attachment; filename=\"page.html\""), "\(page.head)")

            // Small files are in the database, and large ones have several objects.
            let small = try get(node, "small.txt")
            #expect(small.status == 200 && small.content == Array(Self.content[..<1_000]))
            #expect(try get(node, "large.bin").content == Self.content)
            let described = try node.exchange(Request("HEAD", "/files/" + Self.photo, Self.fields))
            #expect(described.status == 200 && described.fields["Content-Length"] == "300000")
            let tag = try #require(described.fields["ETag"])

            // Access and conditions are evaluated first.
            #expect(try get(node, Self.photo, []).status == 401)
            #expect(try get(node, "none.jpg").status == 404)
            let unchanged = try get(node, Self.photo, Self.fields + [("If-None-Match", tag)])
            #expect(unchanged.status == 304)
            #expect(try get(node, Self.photo, Self.fields + [("If-Match", "\"x\"")]).status == 412)
            let resumed = try get(
                node, Self.photo, Self.fields + [("Range", "bytes=299999-"), ("If-Range", tag)])
            #expect(resumed.status == 206 && resumed.content == [Self.content[299_999]])
            let other = try get(
                node, Self.photo, Self.fields + [("Range", "bytes=299999-"), ("If-Range", "\"storage\"")])
            #expect(other.status == 307)

            // The bytes of an object after those of the file must not be sent.
            _ = try cluster.database.query(
                """
                UPDATE onward.piece SET size = 150000 WHERE blob = (SELECT blob FROM onward.name WHERE name = 'page.html');
                UPDATE onward.name SET size = 150000 WHERE name = 'page.html';
                """)
            let beginning = try get(node, "page.html")
            #expect(beginning.status == 200 && beginning.content == Array(Self.content[..<150_000]))
            for secret in ["X-Amz-", "Signature="] { #expect(!node.log.contains(secret), "\(secret)") }
        }
    }

    @Test("onward get downloads and resumes through redirections, and public-endpoint= is the address in the URLs")
    func clients() throws {
        try withCluster(1, ["--redirect-downloads"]) { cluster in
            let first = cluster.nodes[0]
            let body = Request.Content.bytes(Array(Self.content[..<3_000_000]))
            #expect(try first.exchange(Request("PUT", "/files/f", [], body)).status == 201)
            let directory = try TemporaryDirectory()
            let target = directory.path + "/f"
            let run = try OnwardRun(
                ["get", "http://127.0.0.1:\(first.port)/files/f", "-o", target, "--quiet"],
                environment: ["HOME": directory.path, "XDG_STATE_HOME": directory.path])
            #expect(run.ending == .exited(0), "\(run.output)")
            #expect(FileManager.default.contents(atPath: target).map { Array($0) } == Array(Self.content[..<3_000_000]))

            let storage = Array(first.storage[..<3]) + [cluster.bucket + "&public-endpoint=https://files.example"]
            let second = try ServerProcess(
                ["--redirect-downloads"], environment: cluster.storage.environment, storage: storage)
            try second.awaitReadiness()
            let response = try second.exchange(.get("/files/f"))
            #expect(response.status == 307)
            #expect(response.fields["Location"]?.hasPrefix("https://files.example/bucket-") == true, "\(response)")
        }
    }

    @Test(
        "a URL is valid, and for a minute only, although the clock of the server differs by minutes",
        .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"))
    func clocks() throws {
        for difference in [-120, 120] {
            let clock = try ShiftedClock()
            try clock.shift(by: difference)
            let environment = clock.environment
            try withCluster(1, ["--redirect-downloads"], Cluster.Features(environment: { _ in environment })) {
                cluster in
                let node = cluster.nodes[0]
                let body = Request.Content.bytes(Array(Self.content[..<100_000]))
                #expect(try node.exchange(Request("PUT", "/files/f", [], body)).status == 201)
                let before = SystemClock.realtimeSeconds()
                let url = try #require(try node.exchange(.get("/files/f")).fields["Location"])
                let after = SystemClock.realtimeSeconds()
                let dates = (before - 2...after + 2).map { "X-Amz-Date=\(Self.date($0))&" }
                #expect(dates.contains { url.contains($0) }, "\(url)")
                let file = try fetch(url)
                #expect(file.head.first == "HTTP/1.1 200 OK" && file.content == Array(Self.content[..<100_000]))
            }
            withExtendedLifetime(clock) {}
        }
    }

    /// A time in the form of a signature.
    private static func date(_ seconds: Int64) -> String {
        let date = Date(timeIntervalSince1970: TimeInterval(seconds))
        return date.formatted(.iso8601.dateSeparator(.omitted).timeSeparator(.omitted))
    }

    @Test("--redirect-downloads needs an object storage")
    func refused() throws {
        let process = try ServerProcess.run(["--redirect-downloads", "--root", "/nonexistent"])
        #expect(try process.awaitEnding() == .exited(64))
        #expect(process.errorOutput.contains("--redirect-downloads needs --catalog and --blobs"))
    }
}
