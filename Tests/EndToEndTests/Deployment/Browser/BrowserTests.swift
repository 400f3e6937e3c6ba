import Digests
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Pages in a real browser upload and download files: `make test-browser`.
@Suite(
    "Browser", .serialized, .blocking,
    .enabled(if: getenv("ONWARD_BROWSER") != nil, "make test-browser runs it"))
struct BrowserTests {
    private static var root: String {
        "/" + #filePath.split(separator: "/").dropLast(5).joined(separator: "/")
    }

    /// Opens a page in a new headless browser, which ends when the returned object is released.
    private func open(_ url: String, in directory: TemporaryDirectory) throws -> ProcessGroup {
        // The browser uses no profile of a user, and can reach only this host.
        let options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
            "--host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1'",
            "--user-data-dir='\(directory.path)/profile'",
        ]
        return try ProcessGroup(
            shell: "HOME='\(directory.path)' exec chromium \(options.joined(separator: " ")) '\(url)'",
            output: directory.path + "/browser.log")
    }

    private func pages() throws -> PageServer {
        try PageServer([Self.root + "/Tests/EndToEndTests/Deployment/Browser", Self.root + "/docs/examples/browser"])
    }

    private struct PageReport: Decodable {
        var failure: String?
        var paused: String?
        var kept: Bool?
        var offsetAfterReload: Int?
        var interruptions: Int?
        var location: String?
        var forgotten: Bool?
        var ranges: [ReportedValue]?
        var sent: String?
        var received: String?
    }

    private enum ReportedValue: Decodable, Equatable {
        case number(Int)
        case text(String)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let number = try? container.decode(Int.self) {
                self = .number(number)
            } else {
                self = .text(try container.decode(String.self))
            }
        }
    }

    @Test(
        "XCO-01 XCO-02: a page of another origin uploads a file despite cuts, a pause and a reload, and downloads it",
        arguments: [["--max-size", "1G"], ["--max-append-size", "3M"]])
    func journey(options: [String]) throws {
        let size = 24 << 20
        let directory = try TemporaryDirectory()
        let pages = try pages()
        let page = "http://localhost:\(pages.port)"
        let server = try ServerProcess(["--cors-origin", page] + options)
        // Every connection is cut after five million bytes.
        let proxy = try FaultProxy(upstream: server.port) { 5_000_000 }
        let browser = try open(
            "\(page)/journey.html?size=\(size)&target=\(proxy.url)/files/inbox/", in: directory)
        defer { browser.kill() }
        let report: PageReport
        do { report = try pages.awaitResult(PageReport.self, within: .seconds(180)) } catch {
            let log = FileManager.default.contents(atPath: directory.path + "/browser.log") ?? Data()
            throw TestFailure(
                "\(error)\n\(server.log.suffix(3000))\n\(String(decoding: log.suffix(2000), as: UTF8.self))")
        }
        #expect(report.failure == nil)
        #expect(report.paused?.hasPrefix(proxy.url + "/uploads/") == true)
        #expect(report.kept == true, "the page still has the URL after the reload")
        #expect(report.offsetAfterReload.map { $0 > 0 && $0 < size } == true, "\(report)")
        #expect(proxy.cuts >= 2)
        if options.first == "--max-size" { #expect(report.interruptions.map { $0 >= 2 } == true, "\(report)") }
        #expect(report.forgotten == true)
        #expect(report.ranges == [.number(206), .number(206), .text("bytes \(size / 2)-\(size - 1)/\(size)")])
        #expect(report.sent != nil && report.sent == report.received)
        let names = server.publishedNames().filter { $0.hasSuffix(".bin") }
        #expect(names == ["inbox/ein größeres.bin"])
        let content = try #require(names.first.flatMap { server.published($0) })
        #expect(content.count == size)
        var digest = RunningDigest(.sha256)
        content.withUnsafeBytes { digest.update($0) }
        #expect(digest.finalized().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == report.sent)
    }

    @Test("A page of an origin that is not allowed cannot read, upload or remove files with scripts or a form")
    func stranger() throws {
        let directory = try TemporaryDirectory()
        let pages = try pages()
        // With another name for the same address the origin differs.
        let server = try ServerProcess(["--cors-origin", "http://localhost:\(pages.port)"])
        try server.publish(Array("secret".utf8), as: "secret.txt")
        let browser = try open(
            "http://127.0.0.1:\(pages.port)/stranger.html?target=http://127.0.0.1:\(server.port)/files/", in: directory)
        defer { browser.kill() }
        let report = try pages.awaitResult([String: String].self, within: .seconds(120))
        #expect(
            report == [
                "upload": "UploadError", "put": "TypeError", "read": "TypeError", "remove": "TypeError",
                "simplePost": "opaque", "form": "sent",
            ])
        #expect(server.publishedNames() == ["secret.txt"])
        #expect(server.fileContent("secret.txt") == Array("secret".utf8))
        // Both requests that the browser sent were refused.
        let refusals = try server.process.awaitErrorOutput { log -> Int? in
            let count = log.split(separator: "\n").count {
                $0.contains(" POST /files/") && $0.contains(" 403 foreign-origin")
            }
            return count >= 2 ? count : nil
        }
        #expect(refusals == 2)
    }
}
