import ConformanceKit
import HTTPTestSupport
import Testing

/// `PUT` and `DELETE` for files, without the upload protocol (RFC 9110 sections 9.3.4, 9.3.5 and 13).
@Suite("Plain PUT and DELETE", .blocking)
struct PlainUploadTests {
    private static func put(_ name: String, _ content: String, _ fields: [(String, String)] = []) -> Request {
        Request("PUT", "/files/" + name, fields, .bytes(Array(content.utf8)))
    }

    @Test("CRE-09: PUT creates a file with 201 and replaces a complete file with 204", arguments: Transport.allCases)
    func createAndReplace(transport: Transport) throws {
        try withService(transport) { server in
            let created = try server.exchange(Self.put("a/b/f.txt", "one"))
            #expect(created.status == 201)
            #expect(created.location == "/files/a/b/f.txt")
            #expect(created.interim.isEmpty)
            #expect(!created.fields.contains("Upload-Complete"))
            let replaced = try server.exchange(Self.put("a/b/f.txt", "two"))
            #expect(replaced.status == 200 || replaced.status == 204)
            #expect(try server.download("a/b/f.txt").text == "two")
            let chunked = Request("PUT", "/files/a/b/f.txt", [], .chunks([Array("th".utf8), Array("ree".utf8)]))
            #expect(try server.exchange(chunked).isSuccessful)
            #expect(try server.download("a/b/f.txt").text == "three")
            let empty = try server.exchange(Self.put("a/b/empty", ""))
            #expect(empty.status == 201)
            #expect(server.data.published("a/b/empty") == [])
        }
    }

    @Test("PUT to a directory, below a file or to a collection is refused and changes nothing")
    func wrongPlaces() throws {
        try withService { server in
            try server.publish(Array("one".utf8), as: "dir/f.txt")
            for (target, statuses) in [
                ("/files/dir", [409]), ("/files/dir/f.txt/x", [409]), ("/files/dir/", [405]), ("/files/", [405]),
                ("/files", [405]), ("/uploads/x", [404, 405]), ("/nowhere", [404]), ("/", [404]),
                ("/files/a%2fb", [400]), ("/files/..", [400]), ("/files/%00", [400]),
            ] {
                let response = try server.exchange(Request("PUT", target, [], .bytes([1, 2, 3])))
                #expect(statuses.contains(response.status), "\(target): \(response.status)")
                #expect(response.problem?.code != nil, "\(target)")
            }
            #expect(server.data.published("dir/f.txt") == Array("one".utf8))
        }
    }

    @Test("A PUT with Content-Range is a partial PUT: it is refused and replaces nothing (RFC 9110 section 9.3.4)")
    func contentRange() throws {
        try withService { server in
            try server.publish(Array("0123456789".utf8), as: "f.txt")
            // curl sends this with -C 5 -T.
            let request = Self.put("f.txt", "56789", [("Content-Range", "bytes 5-9/10")])
            #expect(try server.exchange(request).status == 400)
            #expect(server.data.published("f.txt") == Array("0123456789".utf8))
            let creation = Request.creation(complete: true, .bytes(Array("56789".utf8)))
                .with("Content-Range", "bytes 5-9/10")
            #expect(try server.exchange(creation).status == 400)
        }
    }

    @Test("RNG-16: PUT obeys If-Match, with strong comparison, If-None-Match and If-Unmodified-Since")
    func conditions() throws {
        try withService { server in
            func status(_ name: String, _ content: String, _ fields: [(String, String)]) throws -> Int {
                let response = try server.exchange(Self.put(name, content, fields))
                if response.status == 412 { #expect(response.problem?.code == "precondition-failed") }
                return response.status
            }
            for field in [("If-Match", "*"), ("If-Match", "\"a\"")] {
                let result = try status("f.txt", "never", [field])
                #expect(result == 412, "\(field)")
            }
            #expect(server.data.published("f.txt") == nil)
            let first = try status("f.txt", "one", [("If-None-Match", "*")])
            #expect(first == 201)
            try server.data.setModified("f.txt", to: 1_700_000_000)
            let tag = try #require(try server.download("f.txt").value("ETag"))
            for field in [
                ("If-None-Match", "*"), ("If-None-Match", tag), ("If-None-Match", "W/" + tag),
                ("If-None-Match", "junk"),
                ("If-Match", "\"a\""), ("If-Match", "W/" + tag), ("If-Match", "junk"),
                ("If-Unmodified-Since", "Tue, 14 Nov 2023 22:13:19 GMT"),
            ] {
                let result = try status("f.txt", "never", [field])
                #expect(result == 412, "\(field)")
                #expect(server.data.published("f.txt") == Array("one".utf8), "\(field)")
            }
            let second = try status("f.txt", "two", [("If-Match", tag)])
            #expect(second == 204)
            let stale = try status("f.txt", "never", [("If-Match", tag)])
            #expect(stale == 412)
            let third = try status("f.txt", "three", [("If-Match", "*")])
            #expect(third == 204)
            let fourth = try status("f.txt", "four", [("If-None-Match", tag)])
            #expect(fourth == 204)
            try server.data.setModified("f.txt", to: 1_700_000_000)
            let fifth = try status("f.txt", "five", [("If-Unmodified-Since", "Tue, 14 Nov 2023 22:13:20 GMT")])
            #expect(fifth == 204)
            #expect(server.data.published("f.txt") == Array("five".utf8))
        }
    }

    @Test("INT-05: a PUT whose condition is false gets 412 before it sends content")
    func early() throws {
        try withSocket { server in
            try server.publish([1], as: "f.txt")
            let connection = try server.connect()
            let fields = [("If-None-Match", "*"), ("Expect", "100-continue")]
            try connection.send(Request("PUT", "/files/f.txt", fields, .declared(1_000_000)))
            let response = try connection.readResponse()
            #expect(response.status == 412)
            #expect(response.interim.isEmpty)
        }
    }
}
