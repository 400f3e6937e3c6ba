import ConformanceKit
import FoundationEssentials
import HTTPTestSupport
import Testing

@testable import TransferServer

/// `GET` of a collection.
@Suite("Listings", .blocking)
struct ListingTests {
    private struct Entry: Decodable {
        let name: String
        let type: String
        let size: Int?
        let modified: String
        let url: String
    }

    /// Names with a special meaning in HTML, URLs or JSON.
    private static let hostile = [
        "<script>alert(1)<script>", "\"><img src=x onerror=alert(1)>", "a&b&amp;c", "it's", "a b", "100%", "%2e%2e",
        "question?x=1#fragment", "semi;colon", "javascript:alert(1)", "é", "日本語.txt", "👩‍👩‍👧.png", "plus+equals=",
        "brackets[1]{2}", "tilde~", "-rf", ".hidden", "..three", "a\u{202E}gpj.exe", "quote\"quote",
    ]

    private func list(_ server: any TestedService, _ target: String) throws -> [Entry] {
        let response = try server.exchange(Request("GET", target, [("Accept", "application/json")]))
        #expect(response.status == 200)
        #expect(response.value("Content-Type") == "application/json")
        return try JSONDecoder().decode([Entry].self, from: Data(response.content))
    }

    @Test(
        "JSON lists every file and directory, and each URL leads to its file, whatever its name is",
        arguments: Transport.allCases)
    func json(transport: Transport) throws {
        try withService(transport) { server in
            try server.publish(Array("in it".utf8), as: "dir/inner.txt")
            for name in Self.hostile { try server.data.place(Array(name.utf8), as: name) }
            let entries = try list(server, "/files/")
            #expect(Set(entries.map(\.name)) == Set(Self.hostile + ["dir"]))
            for entry in entries where entry.type == "file" {
                let response = try server.exchange(.get(entry.url))
                #expect(response.status == 200, "\(entry.name): \(entry.url)")
                #expect(response.text == entry.name)
                #expect(entry.size == entry.name.utf8.count)
                #expect(response.value("Last-Modified") == entry.modified)
            }
            let directory = try #require(entries.first { $0.type == "directory" })
            #expect(directory.url == "/files/dir/")
            let inner = try list(server, directory.url)
            #expect(inner.map(\.url) == ["/files/dir/inner.txt"])
            let withoutSlash = try list(server, "/files")
            #expect(withoutSlash.map(\.url) == entries.map(\.url))
        }
    }

    @Test(
        "HTML: no name becomes markup, and each link leads to its file",
        arguments: ["*/*", "text/html,application/xhtml+xml,*/*;q=0.8"], Transport.allCases)
    func html(accepted: String, transport: Transport) throws {
        try withService(transport) { server in
            try server.publish([], as: "<b>&\"dir\"/inner.txt".addingEscapes)
            for name in Self.hostile { try server.data.place(Array(name.utf8), as: name) }
            let accept = ("Accept", accepted)
            let response = try server.exchange(Request("GET", "/files/", [accept]))
            #expect(response.status == 200)
            #expect(response.value("Content-Type") == "text/html; charset=utf-8")
            #expect(response.value("X-Content-Type-Options") == "nosniff")
            #expect(response.value("Content-Security-Policy")?.hasPrefix("default-src 'none'") == true)
            #expect(response.list("Vary").contains("accept"))
            // Names are in the rows of the web interface, and in all of the plain listing.
            func rows(_ response: ConformanceKit.Response) -> String {
                let parts = response.text.split(separator: "<tbody>")
                return String(parts.last?.split(separator: "</tbody>").first ?? "")
            }
            let page = rows(response)
            for markup in ["<script", "<img", "<b>", "onerror=alert(1)>\"", "href=\"javascript:"] {
                #expect(!page.contains(markup), "\(markup)")
            }
            let links = page.split(separator: "href=\"").dropFirst().compactMap { part in
                part.split(separator: "\"").first.map {
                    $0.replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&quot;", with: "\"")
                        .replacing("&amp;", with: "&")
                }
            }
            #expect(links.count == Self.hostile.count + 1)
            for link in links {
                // The link is relative, and never has a scheme.
                #expect(link.hasPrefix("./"))
                #expect(try server.exchange(.get("/files/" + link.dropFirst(2))).status == 200, "\(link)")
            }
            let directory = try #require(links.first { $0.hasSuffix("/") })
            let inner = try server.exchange(Request("GET", "/files/" + directory.dropFirst(2), [accept]))
            #expect(inner.text.contains("&lt;b&gt;&amp;&quot;dir&quot;") == (accepted == "*/*"))
            #expect(!rows(inner).contains("<b>"))
            // The same directory, requested without the slash at the end.
            let other = try server.exchange(Request("GET", "/files", [accept]))
            #expect(rows(other) == page.replacing("href=\"./", with: "href=\"./files/"))
        }
    }

    @Test(
        "Clients that prefer JSON get JSON, all others get HTML; HEAD has the same fields",
        arguments: Transport.allCases)
    func negotiation(transport: Transport) throws {
        try withService(transport) { server in
            let html = "text/html; charset=utf-8"
            for (accept, type) in [
                (nil, html), ("*/*", html), ("application/json", "application/json"), ("text/html", html),
                ("TEXT/HTML;q=0.9, */*;q=0.1", html), ("", html), ("text/*", html), ("application/*", html),
                ("application/json, text/html", "application/json"), ("application/json;q=0", html),
                ("text/html, application/json;q=0.9", html), ("application/json;q=0.1, */*", "application/json"),
                ("text/html;q=0.5, application/json;q=0.5", "application/json"), ("application/jsonp", html),
                ("application/json, junk", html), ("application/json;q=9", html),
                ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", html),
                ("application/json, text/plain, */*", "application/json"),
            ] {
                let fields = accept.map { [("Accept", $0)] } ?? []
                let response = try server.exchange(Request("GET", "/files/", fields))
                #expect(response.value("Content-Type") == type, "\(accept ?? "none")")
                #expect(response.list("Vary").contains("accept"))
                #expect(response.value("X-Content-Type-Options") == "nosniff")
                #expect(response.value("Cross-Origin-Resource-Policy") == "same-origin")
                let head = try server.exchange(Request("HEAD", "/files/", fields))
                #expect(head.status == 200)
                #expect(head.value("Content-Type") == type)
                #expect(head.value("Vary") == response.value("Vary"))
            }
            let entries = try list(server, "/files/")
            #expect(entries.isEmpty)
        }
    }

    @Test("A listing shows neither unfinished uploads nor anything that cannot be downloaded")
    func nothingElse() throws {
        try withService { server in
            let creation = Request.creation(complete: false, .bytes([1, 2, 3]))
            #expect(try server.exchange(creation).status == 201)
            #expect(symlinkFile("/etc/passwd", server.data.path(of: "link")))
            #expect(makePipe(server.data.path(of: "pipe")))
            let entries = try list(server, "/files/")
            #expect(entries.isEmpty)
            #expect(try server.exchange(.get("/files/none/")).status == 404)
        }
    }

    @Test("GET and HEAD of a directory without its slash are redirected by 308")
    func missingSlash() throws {
        try withService { server in
            try server.publish([1], as: "a%20b/c/f.bin")
            for method in ["GET", "HEAD"] {
                for target in ["/files/a%20b", "/files/a%20b/c", "/files/%61%20b"] {
                    let response = try server.exchange(Request(method, target))
                    #expect(response.status == 308, "\(target)")
                    let location = try #require(response.location)
                    #expect(location.hasSuffix(target.hasSuffix("c") ? "/files/a%20b/c/" : "/files/a%20b/"))
                    #expect(try server.exchange(.get(location)).status == 200)
                }
            }
            for query in ["limit=5", "limit=5&after=a%20b", "", "x=//y?z"] {
                let response = try server.exchange(.get("/files/a%20b?" + query))
                #expect(response.status == 308)
                #expect(response.location?.hasSuffix("/files/a%20b/?" + query) == true, "\(response)")
            }
        }
    }

    @Test("a connection has room for the longest redirection; a longer query is not repeated")
    func longRedirection() throws {
        // Each name has 254 bytes, which need 762 bytes in percent-encoding.
        let name = String(repeating: "%C3%A9", count: 127)
        let path = Array(repeating: name, count: 15).joined(separator: "/")
        let query = String(repeating: "q", count: FilesHandler.maxRedirectedQuery)
        try withSocket { server in
            try server.publish([1], as: path + "/f")
            let response = try server.exchange(.get("/files/\(path)?\(query)"))
            #expect(response.status == 308)
            #expect(response.location == "/files/\(path)/?\(query)")
            #expect(FileResponses.maxRedirection <= response.location?.utf8.count ?? 0, "the longer one was not tested")
            #expect(try server.exchange(.get("/files/\(path)?\(query)q")).location == "/files/\(path)/")
        }
    }
}
