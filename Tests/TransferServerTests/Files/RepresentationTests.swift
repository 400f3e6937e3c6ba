import ConformanceKit
import HTTPTestSupport
import Testing

/// The fields of the response with a published file.
@Suite("Representation fields", .timeLimit(.minutes(30)))
struct RepresentationTests {
    /// File names with content types, and whether a browser may execute such a file or render it as a page.
    private static let types: [(name: String, type: String?, isActive: Bool)] = [
        ("page.html", nil, true), ("page.HTM", nil, true), ("image.svg", nil, true), ("code.js", nil, true),
        ("feed.xml", nil, true), ("text.pdf", nil, true), ("data.bin", "text/html", true),
        ("data.txt", "image/svg+xml", true), ("junk.html", "junk", true), ("x2", "TEXT/HTML;charset=utf-8", true),
        ("x3", "application/xhtml+xml", true), ("x4", "text/xml", true), ("x5", "application/atom+XML", true),
        ("x6", "application/mathml+xml", true), ("x7", "application/javascript", true), ("x8", "text/ecmascript", true),
        ("x9", "application/pdf", true), ("x10", "application/x-shockwave-flash", true),
        ("x11", "text/cache-manifest", true), ("x12", "multipart/x-mixed-replace;boundary=a", true),
        ("x13", "message/rfc822", true),
        ("x16", "text/xsl", true), ("x17", "application/wasm", true), ("x18", "image/svg", true),
        ("plain", nil, false), ("a.txt", nil, false), ("a.png", nil, false), ("a.mp4", nil, false),
        ("a.json", nil, false), ("a.zip", nil, false), ("page2.html", "text/plain", false),
        ("y1", "Image/PNG", false), ("y2", "audio/ogg", false), ("y3", "text/plain;charset=\"utf-8\"", false),
    ]

    private func upload(_ name: String, _ type: String?, to server: any TestedService) throws {
        let fields = type.map { [("Content-Type", $0)] } ?? []
        let content = Request.Content.bytes(Array("<script>alert(1)</script>".utf8))
        #expect(try server.exchange(Request("PUT", "/files/" + name, fields, content)).status == 201)
    }

    @Test(
        "SEC-13: a browser never runs uploaded files: active types are attachments, with nosniff and a sandbox"
    )
    func inert() throws {
        try withService { server in
            for (name, type, isActive) in Self.types {
                try upload(name, type, to: server)
                let tag = try #require(try server.download(name).value("ETag"))
                let requests: [(fields: [(String, String)], status: Int)] = [
                    ([], 200), ([("Range", "bytes=1-3")], 206), ([("Range", "bytes=1-3,5-6")], 206),
                    ([("If-None-Match", tag)], 304),
                ]
                for method in ["GET", "HEAD"] {
                    for (fields, status) in requests {
                        let response = try server.exchange(Request(method, "/files/" + name, fields))
                        #expect(response.status == (method == "HEAD" && status == 206 ? 200 : status))
                        expectInert(response, "\(name) \(status)")
                        let disposition = isActive ? "attachment; filename=\"\(name)\"" : nil
                        #expect(response.value("Content-Disposition") == disposition, "\(name)")
                    }
                }
            }
        }
    }

    private func expectInert(
        _ response: ConformanceKit.Response, _ comment: Comment, policy: String = "same-origin",
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(response.value("X-Content-Type-Options") == "nosniff", comment, sourceLocation: sourceLocation)
        let directives = (response.value("Content-Security-Policy") ?? "").split(separator: ";").map {
            $0.split(separator: " ").map(String.init)
        }
        // A sandbox without permissions: no scripts, and no access to this origin.
        #expect(directives.contains(["sandbox"]), comment, sourceLocation: sourceLocation)
        #expect(directives.contains(["default-src", "'none'"]), comment, sourceLocation: sourceLocation)
        #expect(
            response.value("Cross-Origin-Resource-Policy") == policy, comment, sourceLocation: sourceLocation)
    }

    @Test("SEC-13: --inline removes Content-Disposition from active types; nosniff and the sandbox stay")
    func inline() throws {
        try withService(settings: .with { $0.shouldShowActiveTypes = true }) { server in
            for (name, type, _) in Self.types {
                try upload(name, type, to: server)
                for fields in [[], [("Range", "bytes=1-3")]] {
                    let response = try server.download(name, fields)
                    expectInert(response, "\(name)")
                    #expect(!response.fields.contains("Content-Disposition"), "\(name)")
                }
            }
        }
    }

    @Test("SEC-13: Content-Disposition of an attachment has the file's name, whatever characters the name has")
    func attachmentNames() throws {
        try withService { server in
            for (name, disposition) in [
                ("a b.html", #"attachment; filename="a b.html""#),
                ("\"q\".html", #"attachment; filename="_q_.html"; filename*=UTF-8''%22q%22.html"#),
                ("é%.html", #"attachment; filename="__.html"; filename*=UTF-8''%C3%A9%25.html"#),
            ] {
                try server.data.place([1], as: name)
                #expect(try server.download(name.addingEscapes).value("Content-Disposition") == disposition)
            }
        }
    }

    @Test("SEC-13: with --cors-origin * any page may embed files and listings, otherwise only pages of this origin")
    func embedding() throws {
        for (origin, policy) in [("*", "cross-origin"), ("https://app.example", "same-origin")] {
            try withService(settings: .with { $0.server.corsOrigins = [origin] }) { server in
                try server.publish([1], as: "a.png")
                expectInert(try server.download("a.png"), "\(origin)", policy: policy)
                let listing = try server.exchange(.get("/files/"))
                #expect(listing.value("Cross-Origin-Resource-Policy") == policy)
            }
        }
    }

    @Test("SEC-13: a browser never shows a problem document as a page of this site")
    func problems() throws {
        try withService { server in
            for request in [
                Request.get("/files/none"), .get("/files/%00"), .get("/elsewhere"), .get("/uploads/x"),
                Request("PATCH", "/files/", [], .bytes([1])), Request.get("/files/").with("Host", "evil.example"),
            ] {
                let response = try server.exchange(request)
                #expect(response.problem != nil && response.value("X-Content-Type-Options") == "nosniff")
                #expect(response.value("Content-Security-Policy") == "sandbox; default-src 'none'")
            }
        }
    }

    @Test("If the upload has no content type, the type is derived from the name")
    func contentTypes() throws {
        let types = [
            "a.txt": "text/plain; charset=utf-8", "a.TXT": "text/plain; charset=utf-8", "a.json": "application/json",
            "a.pdf": "application/pdf", "a.mp4": "video/mp4", "a.webm": "video/webm", "a.jpeg": "image/jpeg",
            "a.png": "image/png", "a.tar.gz": "application/gzip", "a.zip": "application/zip",
            "a.unknown": "application/octet-stream", "none": "application/octet-stream",
        ]
        try withService { server in
            for (name, type) in types {
                try server.publish([1], as: name)
                let response = try server.download(name)
                #expect(response.value("Content-Type") == type, "\(name)")
                #expect(!response.fields.contains("Content-Encoding"))
            }
        }
    }

    @Test("Want-Repr-Digest on GET and HEAD gets the digest of the complete file")
    func digests() throws {
        let content = Payload.bytes(300_000)
        let sha256 = content.digestField(.sha256)
        let sha512 = content.digestField(.sha512)
        let cases: [(want: String, value: String?)] = [
            ("sha-256=1", sha256), ("sha-512=1", sha512), ("sha-512=3, sha-256=10", sha256),
            ("sha-256=1, sha-512=2", sha512), ("sha-256=0, sha-512=1", sha512), ("md5=10, sha-256=1", sha256),
            ("md5=10", nil), ("sha-256=0", nil), ("sha-256=11", nil), ("sha-256", nil), ("junk junk", nil),
        ]
        try withService { server in
            try server.publish(content, as: "f.bin")
            for (want, value) in cases {
                for method in ["GET", "HEAD"] {
                    for range in [[], [("Range", "bytes=5-9")]] {
                        let response = try server.exchange(
                            Request(method, "/files/f.bin", [("Want-Repr-Digest", want)] + range))
                        #expect(response.value("Repr-Digest") == value, "\(method) \(want) \(range)")
                    }
                }
            }
            // The digest is computed again for a changed file.
            let other = Payload.bytes(300_000, seed: 2)
            try server.publish(other, as: "f.bin")
            let response = try server.exchange(
                Request("HEAD", "/files/f.bin", [("Want-Repr-Digest", "sha-256=1")]))
            #expect(response.value("Repr-Digest") == other.digestField())
            try server.publish([], as: "empty.bin")
            let empty = try server.exchange(
                Request("GET", "/files/empty.bin", [("Want-Repr-Digest", "sha-256=1")]))
            #expect(empty.value("Repr-Digest") == [UInt8]().digestField())
        }
    }

    @Test("Last-Modified is the modification time of the file, as an HTTP date")
    func lastModified() throws {
        try withService { server in
            try server.publish([1], as: "f.bin")
            for (seconds, date) in [
                (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
                (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            ] {
                try server.data.setModified("f.bin", to: seconds)
                #expect(try server.download("f.bin").value("Last-Modified") == date)
            }
        }
    }

    @Test("Paths below files/ lead to regular files only: links, pipes and other spellings of paths are refused")
    func paths() throws {
        try withService { server in
            try server.publish(Array("secret".utf8), as: "dir/f.bin")
            #expect(symlinkFile("/etc/passwd", server.data.path(of: "link")))
            #expect(symlinkFile("/etc", server.data.path(of: "links")))
            #expect(makePipe(server.data.path(of: "pipe")))
            for target in [
                "/files/link", "/files/links/passwd", "/files/links/", "/files/pipe", "/files/none", "/files/dir/none",
                "/files/dir/f.bin/x", "/files/dir/f.bin/",
            ] {
                #expect(try server.exchange(.get(target)).status == 404, "\(target)")
            }
            for target in [
                "/files/../onward.sqlite", "/files/%2e%2e/onward.sqlite", "/files/dir/..%2f..%2fonward.sqlite",
                "/files/dir/%2e%2e/%2e%2e/onward.sqlite", "/files/./dir/f.bin", "/files//dir/f.bin",
                "/files/dir%2ff.bin",
                "/files/f%00.bin", "/files/%ff", "/files/dir\\f.bin", "/files/%zz",
                "/files/" + String(repeating: "a", count: 300),
            ] {
                let response = try server.exchange(.get(target))
                #expect(response.status == 400, "\(target)")
                #expect(response.problem?.code != nil, "\(target)")
            }
            #expect(try server.exchange(.get("/files/dir/%66.bin")).text == "secret")
            #expect(try server.exchange(.get("/files/dir/f.bin?x=../..")).text == "secret")
            #expect(try server.exchange(.get("/uploads/..%2fonward.sqlite")).status >= 400)
        }
    }
}
