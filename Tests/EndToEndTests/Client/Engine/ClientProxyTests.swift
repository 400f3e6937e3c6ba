import ConformanceKit
import Foundation
import HTTPSemantics
import Testing

/// Proxies that refuse, hang or cannot be used: the command reports the proxy and its status, and does not repeat
/// attempts that cannot succeed.
@Suite("Commands: proxies that do not connect to the server", .blocking)
struct ClientProxyTests {
    private func words(_ command: String, _ home: CommandHome, _ scheme: String = "https") throws -> [String] {
        let url = scheme + "://origin.invalid/files/x"
        return command == "put" ? ["put", try home.file([1, 2, 3]), url] : ["get", url, "-o", home.path + "/x"]
    }

    private func run(
        _ words: [String], through proxy: String, _ home: CommandHome
    ) throws -> CommandRun {
        let run = try home.start(words, environment: ["https_proxy": proxy, "http_proxy": proxy, "no_proxy": ""])
        _ = try run.process.awaitEnding(within: .seconds(60))
        return run
    }

    @Test(
        "A CONNECT that is rejected permanently is sent once, and its status is reported",
        arguments: ["put", "get"], [(407, 77), (403, 77), (401, 77), (404, 69), (400, 69)] as [(Int, Int32)])
    func refused(command: String, statuses: (Int, Int32)) throws {
        let proxy = try ScriptedServer { _, reply in try reply.respond(statuses.0, [:], "no") }
        let home = try CommandHome()
        let run = try run(try words(command, home) + ["--json"], through: proxy.url, home)
        try run.expect(statuses.1)
        #expect(proxy.requests.map(\.method) == ["CONNECT"])
        #expect(run.errors.contains("proxy") && run.errors.contains("\(statuses.0)"), "\(run.errors)")
        #expect(!run.errors.contains("--token-file"), "\(run.errors)")
        #expect(run.errors.contains("https_proxy=http://USER:PASSWORD@HOST:PORT") == (statuses.0 == 407))
        let failed = try #require(try run.objects().last)
        #expect(failed.name == "failed" && failed.text("code") == "proxy-refused")
        #expect(failed.number("status") == Int64(statuses.0))
    }

    @Test(
        "A CONNECT that fails with 502 to 504 is sent again as often as --retries permits", arguments: [502, 503, 504])
    func unavailable(status: Int) throws {
        let proxy = try ScriptedServer { _, reply in try reply.respond(status) }
        let home = try CommandHome()
        let run = try run(try words("put", home) + ["--retries", "1"], through: proxy.url, home)
        try run.expect(75)
        #expect(proxy.requests.map(\.method) == ["CONNECT", "CONNECT"])
        #expect(
            run.errors.contains("The proxy refused the connection to origin.invalid:443 (\(status)"), "\(run.errors)")
    }

    @Test("A 407 to a request without a tunnel is reported as a response of the proxy, too", arguments: ["put", "get"])
    func plain(command: String) throws {
        let proxy = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(407, ["Proxy-Authenticate": "Basic realm=x"])
        }
        let home = try CommandHome()
        let run = try run(try words(command, home, "http"), through: proxy.url, home)
        try run.expect(77)
        #expect(run.errors.contains("The proxy requires credentials (407"), "\(run.errors)")
        #expect(run.errors.contains("http_proxy") && !run.errors.contains("--token-file"), "\(run.errors)")
    }

    @Test("The credentials in the URL of the proxy are sent to the proxy")
    func credentials() throws {
        let proxy = try ScriptedServer { _, reply in try reply.respond(403) }
        let home = try CommandHome()
        let url = "http://me:s%20cret@127.0.0.1:\(proxy.port)"
        try run(try words("get", home), through: url, home).expect(77)
        let value = try #require(proxy.requests.first?.fields["Proxy-Authorization"])
        #expect(value == "Basic " + Data("me:s cret".utf8).base64EncodedString())
    }

    @Test(
        "An unusable URL of a proxy is reported before any connection, and its password is not printed",
        arguments: [
            "foo://me:s3cret@127.0.0.1:1", "http://me:s3cret@127.0.0.1:99999",
        ])
    func unusable(url: String) throws {
        let home = try CommandHome()
        let run = try run(try words("put", home) + ["--json"], through: url, home)
        try run.expect(64)
        #expect(run.errors.contains("proxy's URL") && !run.errors.contains("s3cret"), "\(run.errors)")
        #expect(try !run.objects().contains { $0.name == "interrupted" })
    }

    @Test(
        "If a proxy does not answer, the transfer times out, and the message names the proxy",
        arguments: ["http", "https"])
    func hanging(scheme: String) throws {
        let proxy = try ScriptedServer { _, reply in reply.stall() }
        let home = try CommandHome()
        let options = ["--retries", "0", "--stall-timeout", "1s", "--json"]
        let run = try run(try words("get", home, scheme) + options, through: proxy.url, home)
        try run.expect(75)
        #expect(
            run.errors.contains("the proxy 127.0.0.1:\(proxy.port)")
                || run.errors.contains("The proxy 127.0.0.1:\(proxy.port)"), "\(run.errors)")
        #expect(try run.objects().last?.text("code") == "timed-out")
    }

    @Test(
        "If a proxy answers CONNECT byte by byte, the transfer times out, and the message names the proxy",
        arguments: ["put", "get"], [false, true])
    func trickling(command: String, isHeadBegun: Bool) throws {
        let proxy = try ScriptedServer { _, reply in
            if isHeadBegun { try reply.send("HTTP/1.1 200 OK\r\n") }
            let pieces =
                isHeadBegun
                ? (0..<600).map { "X-\($0): y\r\n" }
                : ("HTTP/1.1 200 " + String(repeating: "O", count: 600)).map { String($0) }
            for piece in pieces {
                try reply.send(piece)
                Deadline.pause(.milliseconds(100))
            }
        }
        let home = try CommandHome()
        let options = ["--retries", "0", "--stall-timeout", "1s", "--json"]
        let start = ContinuousClock.now
        let run = try run(try words(command, home) + options, through: proxy.url, home)
        try run.expect(75)
        #expect(run.errors.contains("The proxy 127.0.0.1:\(proxy.port)"), "\(run.errors)")
        #expect(try run.objects().last?.text("code") == "timed-out")
        #expect(.now - start < .seconds(30))
        #expect(proxy.requests.map(\.method) == ["CONNECT"])
    }

    @Test("If nothing follows an interim response, the transfer times out, and the message does not name the proxy")
    func answering() throws {
        let proxy = try ScriptedServer { _, reply in
            try reply.send("HTTP/1.1 103 Early Hints\r\n\r\n")
            reply.stall()
        }
        let home = try CommandHome()
        let options = ["--retries", "0", "--stall-timeout", "1s"]
        let run = try run(try words("get", home, "http") + options, through: proxy.url, home)
        try run.expect(75)
        #expect(run.errors.contains("No data was transferred during the stall timeout"), "\(run.errors)")
    }
}
