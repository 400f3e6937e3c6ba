import Glibc
import HTTPSemantics
import Testing

/// What comes with a published file.
@Suite("Representation fields", .timeLimit(.minutes(15)), .blocking)
struct RepresentationTests {
    @Test("SEC-13: what strangers uploaded is data: never sniffed, never run as a page of this site")
    func inert() throws {
        try withServer { server in
            for (name, type) in [
                ("page.html", nil), ("page.HTM", nil), ("image.svg", nil), ("code.js", nil), ("feed.xml", nil),
                ("plain", nil), ("data.bin", "text/html"), ("data.txt", "image/svg+xml"), ("x", "junk"),
            ] {
                let fields = type.map { [("Content-Type", $0)] } ?? []
                let content = Request.Content.bytes(Array("<script>alert(1)</script>".utf8))
                #expect(try server.exchange(Request("PUT", "/files/" + name, fields, content)).status == 201)
                let response = try server.download(name)
                #expect(response.value("X-Content-Type-Options") == "nosniff", "\(name)")
                let isAttachment = response.value("Content-Disposition")?.hasPrefix("attachment") == true
                let policy = response.value("Content-Security-Policy") ?? ""
                let isSandboxed = policy.hasPrefix("sandbox;") && !policy.contains("allow-scripts")
                #expect(isAttachment || isSandboxed, "\(name)")
            }
        }
    }

    @Test("Without a content type of the upload the name tells one")
    func contentTypes() throws {
        let types = [
            "a.txt": "text/plain; charset=utf-8", "a.TXT": "text/plain; charset=utf-8", "a.json": "application/json",
            "a.pdf": "application/pdf", "a.mp4": "video/mp4", "a.webm": "video/webm", "a.jpeg": "image/jpeg",
            "a.png": "image/png", "a.tar.gz": "application/gzip", "a.zip": "application/zip",
            "a.unknown": "application/octet-stream", "none": "application/octet-stream",
        ]
        try withServer { server in
            for (name, type) in types {
                try server.publish([1], as: name)
                let response = try server.download(name)
                #expect(response.value("Content-Type") == type, "\(name)")
                #expect(!response.fields.contains("Content-Encoding"))
            }
        }
    }

    @Test(
        "APP-23 RNG-19: type, coding and language of the upload stay with this version of the file, and with no other")
    func metadata() throws {
        let metadata = [
            ("Content-Type", "text/x-own; a=b"), ("Content-Encoding", "gzip"), ("Content-Language", "de, en"),
        ]
        let content = Payload.bytes(1000)
        try withServer { server in
            func expectMetadata(_ name: String, _ isKept: Bool) throws -> String {
                for fields in [[], [("Range", "bytes=2-4")]] {
                    let response = try server.download(name, fields)
                    for (field, value) in metadata {
                        let wanted = isKept ? value : field == "Content-Type" ? "text/plain; charset=utf-8" : nil
                        #expect(response.value(field) == wanted, "\(name) \(field)")
                    }
                }
                // Digest and ranges are those of the coded bytes.
                let head = try server.exchange(Request("HEAD", "/files/" + name, [("Want-Repr-Digest", "sha-256=1")]))
                if isKept { #expect(head.value("Repr-Digest") == content.digestField()) }
                return try #require(head.value("ETag"))
            }
            let plain = try server.exchange(Request("PUT", "/files/plain.txt", metadata, .bytes(content)))
            #expect(plain.status == 201)
            let first = try expectMetadata("plain.txt", true)
            var creation = Request.creation(.v8, "POST", "/files/", complete: false, .bytes(Array(content[..<300])))
            creation.fields += metadata + [("Content-Disposition", "inline; filename=parts.txt")]
            let location = try #require(try server.exchange(creation).location)
            let rest = Request.append(.v8, location, at: 300, complete: true, .bytes(Array(content[300...])))
            #expect(try server.exchange(rest).status == 201)
            let parts = try expectMetadata("parts.txt", true)
            try server.restart()
            #expect(try expectMetadata("plain.txt", true) == first)
            #expect(try expectMetadata("parts.txt", true) == parts)
            // Another version of the same bytes, without them.
            try server.publish(content, as: "plain.txt")
            let second = try expectMetadata("plain.txt", false)
            #expect(second != first)
            // Somebody else's file under the name.
            try server.place(content, as: "other.txt")
            #expect(rename(server.path(of: "other.txt"), server.path(of: "parts.txt")) == 0)
            #expect(try expectMetadata("parts.txt", false) != parts)
            // And after a removal.
            #expect(try server.exchange(Request("PUT", "/files/x.txt", metadata, .bytes(content))).status == 201)
            #expect(try server.exchange(Request("DELETE", "/files/x.txt")).status == 204)
            try server.place(content, as: "x.txt")
            _ = try expectMetadata("x.txt", false)
        }
    }

    @Test("Want-Repr-Digest is answered on GET and HEAD with the digest of the whole file")
    func digests() throws {
        let content = Payload.bytes(300_000)
        let sha256 = content.digestField(.sha256)
        let sha512 = content.digestField(.sha512)
        let cases: [(want: String, value: String?)] = [
            ("sha-256=1", sha256), ("sha-512=1", sha512), ("sha-512=3, sha-256=10", sha256),
            ("sha-256=1, sha-512=2", sha512), ("sha-256=0, sha-512=1", sha512), ("md5=10, sha-256=1", sha256),
            ("md5=10", nil), ("sha-256=0", nil), ("sha-256=11", nil), ("sha-256", nil), ("junk junk", nil),
        ]
        try withServer { server in
            try server.publish(content, as: "f.bin")
            let connection = try server.connect()
            for (want, value) in cases {
                for method in ["GET", "HEAD"] {
                    for range in [[], [("Range", "bytes=5-9")]] {
                        let response = try connection.exchange(
                            Request(method, "/files/f.bin", [("Want-Repr-Digest", want)] + range))
                        #expect(response.value("Repr-Digest") == value, "\(method) \(want) \(range)")
                    }
                }
            }
            // Never a remembered one.
            let other = Payload.bytes(300_000, seed: 2)
            try server.publish(other, as: "f.bin")
            let response = try connection.exchange(
                Request("HEAD", "/files/f.bin", [("Want-Repr-Digest", "sha-256=1")]))
            #expect(response.value("Repr-Digest") == other.digestField())
            try server.publish([], as: "empty.bin")
            let empty = try connection.exchange(
                Request("GET", "/files/empty.bin", [("Want-Repr-Digest", "sha-256=1")]))
            #expect(empty.value("Repr-Digest") == [UInt8]().digestField())
        }
    }

    @Test("Last-Modified is the file's own time, as an HTTP date")
    func lastModified() throws {
        try withServer { server in
            try server.publish([1], as: "f.bin")
            for (seconds, date) in [
                (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
                (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            ] {
                try server.setModified("f.bin", to: seconds)
                #expect(try server.download("f.bin").value("Last-Modified") == date)
            }
        }
    }

    @Test("A file appears when it is whole, and links, devices and strangers' spellings of paths lead nowhere")
    func paths() throws {
        try withServer { server in
            try server.publish(Array("secret".utf8), as: "dir/f.bin")
            #expect(symlinkFile("/etc/passwd", server.path(of: "link")))
            #expect(symlinkFile("/etc", server.path(of: "links")))
            #expect(makePipe(server.path(of: "pipe")))
            let connection = try server.connect()
            for target in [
                "/files/link", "/files/links/passwd", "/files/links/", "/files/pipe", "/files/none", "/files/dir/none",
                "/files/dir/f.bin/x", "/files/dir/f.bin/",
            ] {
                #expect(try connection.exchange(.get(target)).status == 404, "\(target)")
            }
            for target in [
                "/files/../onward.sqlite", "/files/%2e%2e/onward.sqlite", "/files/dir/..%2f..%2fonward.sqlite",
                "/files/dir/%2e%2e/%2e%2e/onward.sqlite", "/files/./dir/f.bin", "/files//dir/f.bin",
                "/files/dir%2ff.bin",
                "/files/f%00.bin", "/files/%ff", "/files/dir\\f.bin", "/files/%zz",
                "/files/" + String(repeating: "a", count: 300),
            ] {
                let response = try connection.exchange(.get(target))
                #expect(response.status == 400, "\(target)")
                #expect(response.problem?.code != nil, "\(target)")
            }
            #expect(try connection.exchange(.get("/files/dir/%66.bin")).text == "secret")
            #expect(try connection.exchange(.get("/files/dir/f.bin?x=../..")).text == "secret")
            #expect(try connection.exchange(.get("/uploads/..%2fonward.sqlite")).status >= 400)
        }
    }
}
