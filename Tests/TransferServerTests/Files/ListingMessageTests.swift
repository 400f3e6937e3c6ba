import ConformanceKit
import HTTPTestSupport
import Testing

/// Listings as messages.
@Suite("Listings as messages", .blocking)
struct ListingMessageTests {
    private func html(_ target: String) -> Request { .get(target).with("Accept", "*/*") }

    private func json(_ target: String) -> Request { .get(target).with("Accept", "application/json") }

    @Test("An invalid limit or cursor gets 400 with a stable code")
    func refusals() throws {
        try withService { server in
            for (query, code) in [
                ("limit=0", "invalid-limit"), ("limit=10001", "invalid-limit"), ("limit=many", "invalid-limit"),
                ("after=", "invalid-cursor"), ("after=..", "invalid-cursor"), ("after=a%2Fb", "invalid-cursor"),
                ("after=%00", "invalid-cursor"),
            ] {
                let response = try server.exchange(json("/files/?" + query))
                #expect(response.status == 400 && response.problem?.code == code, "\(query)")
                // A listing in HTML is one document, whatever the query is.
                #expect(try server.exchange(html("/files/?" + query)).status == 200)
            }
        }
    }

    @Test("HTTP/1.0 gets a listing that ends with the connection, and HEAD gets the head only")
    func oldVersion() throws {
        try withSocket { server in
            try server.data.makeDirectories("d")
            for number in 0..<2000 { try server.data.place([], as: "d/file-\(number)") }
            for target in ["/files/d/", "/files/d/?limit=1500"] {
                for accept in ["*/*", "text/html", "application/json"] {
                    let modern = try server.exchange(.get(target).with("Accept", accept))
                    #expect(modern.value("Transfer-Encoding") == "chunked")
                    var request = Request.get(target).with("Accept", accept)
                    request.version = "HTTP/1.0"
                    let old = try server.exchange(request)
                    #expect(!old.fields.contains("Transfer-Encoding") && !old.fields.contains("Content-Length"))
                    #expect(areEqual(old.content, modern.content))
                    // No byte follows the head, not even the last chunk of empty content.
                    let connection = try server.connect()
                    let head = try connection.exchange(Request("HEAD", target, [("Accept", accept)]))
                    #expect(head.status == 200 && head.value("Content-Type") == modern.value("Content-Type"))
                    #expect(!head.fields.contains("Content-Length"))
                    connection.expectClosed()
                }
            }
            let sent = try server.exchange(html("/files/d/")).content.count
            #expect(server.awaitLog { $0.contains("GET /files/d/ 200 in=0 out=\(sent) ") })
        }
    }
}
