import HTTPSemantics
import Testing

@testable import Gateway

@Suite("Forwarded fields")
struct ForwardedMessageTests {
    /// Spellings of a name that servers treat as the same name.
    private func spellings(_ name: String) -> [String] {
        [
            name, name.lowercased(), name.uppercased(),
            name.split(separator: "-").map { $0.lowercased() }.joined(separator: "-"),
        ]
    }

    private func isForwarded(_ name: String, isUpload: Bool = false) -> Bool {
        !ForwardedMessage.requestFields(["A": "b", name: "x"], isUpload: isUpload).filter { $0.value == "x" }.isEmpty
    }

    @Test(
        "no client can send a field of the gateway, of a connection, or about a proxy, in any spelling",
        arguments: [
            "Onward-Principal", "Onward-Method", "Onward-Target", "Onward-Host", "Onward-Length", "Onward-Digest",
            "Onward-Upload", "Onward-Interim", "Onward-Anything", "X-Forwarded-For", "X-Forwarded-Proto",
            "X-Forwarded-Host", "X-Forwarded-User", "Forwarded", "Via", "X-Real-IP", "Host", "Content-Length",
            "Transfer-Encoding", "TE", "Trailer", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization",
            "Proxy-Authenticate", "Proxy-Authentication-Info", "Upgrade", "Expect", "HTTP2-Settings",
        ])
    func removed(name: String) {
        for spelling in spellings(name) {
            for isUpload in [false, true] { #expect(!isForwarded(spelling, isUpload: isUpload), "\(spelling)") }
        }
    }

    @Test(
        "no name with an underscore is forwarded, because servers may read it as a hyphen",
        arguments: [
            "Onward_Principal", "ONWARD_PRINCIPAL", "onward_principal", "On_ward", "_", "_Onward-Principal",
            "X_Forwarded_For",
            "X-Forwarded_For", "Content_Length", "Transfer_Encoding", "Idempotency_Key", "Cookie_",
        ])
    func underscores(name: String) {
        for spelling in spellings(name) { #expect(!isForwarded(spelling), "\(spelling)") }
    }

    @Test(
        "fields of the client are forwarded",
        arguments: [
            "Authorization", "Cookie", "X-API-Key", "Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Origin",
            "Content-Encoding", "Repr-Digest", "If-Match", "Range", "Onwards", "Onward", "X-Onward-Principal",
            "X-Forwarded",
            "Forwarded-For", "Cache-Control", "Date",
        ])
    func forwarded(name: String) {
        for isUpload in [false, true] { #expect(isForwarded(name, isUpload: isUpload), "\(name)") }
    }

    @Test(
        "fields of the upload protocol, and about a part of the content, are forwarded only without the protocol",
        arguments: [
            "Upload-Complete", "Upload-Incomplete", "Upload-Offset", "Upload-Length", "Upload-Limit",
            "Upload-Draft-Interop-Version", "Content-Digest", "Want-Repr-Digest", "Want-Content-Digest",
            "Idempotency-Key",
        ])
    func upload(name: String) {
        for spelling in spellings(name) {
            #expect(!isForwarded(spelling, isUpload: true), "\(spelling)")
            #expect(isForwarded(spelling, isUpload: false), "\(spelling)")
        }
    }

    @Test("the fields that Connection names are not forwarded, in any case, list form or number of lines")
    func connectionOptions() {
        let fields: Fields = [
            "connection": "close, X-One ,\tX-TWO,,x-three", "CONNECTION": "X-Four", "X-One": "x", "x-two": "x",
            "X-Three": "x",
            "X-FOUR": "x", "X-Five": "kept", "x-one": "x",
        ]
        #expect(ForwardedMessage.requestFields(fields, isUpload: false) == ["X-Five": "kept"])
        #expect(ForwardedMessage.responseFields(fields) == ["X-Five": "kept"])
    }

    @Test("lines keep their order, number, names and values")
    func order() {
        let fields: Fields = ["X-b": " 1", "Host": "h", "x-B": "2", "A": "", "X-b": "3"]
        let expected: Fields = ["X-b": " 1", "x-B": "2", "A": "", "X-b": "3"]
        let forwarded = ForwardedMessage.requestFields(fields, isUpload: false)
        #expect(forwarded.map(\.name) == expected.map(\.name))
        #expect(forwarded == expected)
    }

    @Test("fields of the connection and of the framing are removed from a response; the server adds its own")
    func responses() {
        let response: Fields = [
            "Content-Length": "5", "CONTENT-LENGTH": "5", "Transfer-Encoding": "chunked", "Trailer": "X",
            "Connection": "close",
            "Keep-Alive": "timeout=5", "Proxy-Authenticate": "Basic", "Upgrade": "h2c", "Proxy-Connection": "close",
            "Content-Type": "text/plain", "WWW-Authenticate": "Basic", "Set-Cookie": "a=b", "Set-Cookie": "c=d",
            "Server": "app", "X_Y": "z",
        ]
        #expect(
            ForwardedMessage.responseFields(response) == [
                "Content-Type": "text/plain", "WWW-Authenticate": "Basic", "Set-Cookie": "a=b", "Set-Cookie": "c=d",
                "Server": "app", "X_Y": "z",
            ])
    }

    @Test("an upgrade needs both fields, and one to HTTP/2 is ignored")
    func upgrades() {
        #expect(ForwardedMessage.requestsUpgrade(["Connection": "Upgrade", "Upgrade": "websocket"]))
        #expect(ForwardedMessage.requestsUpgrade(["connection": "keep-alive, upgrade", "upgrade": "h2c, websocket"]))
        #expect(!ForwardedMessage.requestsUpgrade(["Upgrade": "websocket"]))
        #expect(!ForwardedMessage.requestsUpgrade(["Connection": "Upgrade"]))
        #expect(!ForwardedMessage.requestsUpgrade(["Connection": "Upgrade, HTTP2-Settings", "Upgrade": "H2C"]))
    }

    @Test("the length of a response is that of Content-Length, unless the content is chunked")
    func lengths() {
        #expect(ForwardedMessage.contentLength(["Content-Length": "5"]) == 5)
        #expect(ForwardedMessage.contentLength(["Content-Length": "5", "Transfer-Encoding": "chunked"]) == nil)
        #expect(ForwardedMessage.contentLength([:]) == nil)
    }
}
