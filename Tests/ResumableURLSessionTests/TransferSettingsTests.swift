import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import Testing

@testable import ResumableURLSession

@Suite("Transfer settings from a session's configuration")
struct TransferSettingsTests {
    private func request(_ url: String = "http://example.org/", timeout: TimeInterval? = nil) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: url)))
        if let timeout { request.timeoutInterval = timeout }
        return request
    }

    @Test("the timeout of a request overrides the timeout of the session, which overrides the timeout of the transfers")
    func timeouts() throws {
        let configuration = URLSessionConfiguration.default
        var transfers = TransferClient.Configuration()
        transfers.stallTimeout = .seconds(5)
        let plain = TransferSettings(configuration, transfers: transfers)
        #expect(plain.connection(for: try request()).stallTimeout == .seconds(5))
        #expect(plain.connection(for: nil).stallTimeout == .seconds(5))
        #expect(plain.connection(for: try request(timeout: 1.5)).stallTimeout == .milliseconds(1500))
        configuration.timeoutIntervalForRequest = 10
        let own = TransferSettings(configuration, transfers: transfers)
        #expect(own.connection(for: try request()).stallTimeout == .seconds(10))
        #expect(own.connection(for: try request(timeout: 2)).stallTimeout == .seconds(2))
        #expect(own.connection(for: try request(timeout: 0)).stallTimeout == nil)
        #expect(own.connection(for: try request(timeout: .infinity)).stallTimeout == nil)
    }

    @Test("additional header fields of the session replace fields of the transfer settings with the same name")
    func fields() {
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = ["X-Session": "1", "x-shared": 2]
        var transfers = TransferClient.Configuration()
        transfers.fields = ["X-Shared": "0", "X-Other": "3"]
        let fields = TransferSettings(configuration, transfers: transfers).transfers.fields
        #expect(fields["X-Session"] == "1" && fields["X-Shared"] == "2" && fields["X-Other"] == "3")
        #expect(fields.count == 3)
    }

    @Test("the proxy of each scheme is read from the dictionary with CFNetwork's keys")
    func proxies() throws {
        let configuration = URLSessionConfiguration.default
        configuration.connectionProxyDictionary = [
            "HTTPEnable": 1, "HTTPProxy": "proxy.example", "HTTPPort": 3128,
            "HTTPSEnable": false, "HTTPSProxy": "other.example",
        ]
        var transfers = TransferClient.Configuration()
        transfers.proxy = "http://base.example:1"
        let settings = TransferSettings(configuration, transfers: transfers)
        #expect(settings.connection(for: try request()).proxy == "http://proxy.example:3128")
        #expect(settings.connection(for: try request("https://example.org/")).proxy == "http://base.example:1")
        #expect(TransferSettings.proxies([:]).isEmpty)
        #expect(TransferSettings.proxies(["HTTPSProxy": "p"]) == ["https": "http://p:80"])
        for host in ["fd00::5", "[fd00::5]"] {
            #expect(
                TransferSettings.proxies(["HTTPProxy": host, "HTTPPort": 8080]) == ["http": "http://[fd00::5]:8080"])
        }
    }

    @Test("a URL request is converted to a transfer request and back")
    func requests() throws {
        var request = try request("http://example.org/a?b")
        request.httpMethod = "PUT"
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        let transfer = try #require(request.transferRequest)
        #expect(transfer.uri == "http://example.org/a?b" && transfer.method == .put)
        #expect(transfer.fields["Content-Type"] == "text/plain")
        let back = try #require(URLRequest(transfer))
        #expect(back.url == request.url && back.httpMethod == "PUT")
        #expect(back.value(forHTTPHeaderField: "content-type") == "text/plain")
    }

    @Test("a session sends requests that it cannot resume through FoundationNetworking")
    func carried() throws {
        let session = ResumableURLSession(configuration: .default)
        #expect(session.canTransfer(try request()))
        #expect(!session.canTransfer(try request("file:///etc/hosts")))
        #expect(!session.canTransfer(try request("ftp://example.org/a")))
        #expect(session.canTransferDownload(try request()))
        var post = try request()
        post.httpMethod = "POST"
        #expect(session.canTransfer(post) && !session.canTransferDownload(post))
        var part = try request()
        part.setValue("bytes=0-1", forHTTPHeaderField: "Range")
        #expect(!session.canTransferDownload(part))
    }
}
