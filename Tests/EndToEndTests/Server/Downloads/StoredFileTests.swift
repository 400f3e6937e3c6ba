import ConformanceKit
import Glibc
import Testing

/// Files as the storage keeps them: their metadata, large ones, their names, and their removal. These tests also run with a
/// shared storage. `TransferServerTests` has the tests of the responses.
@Suite("Files in the storage", .blocking)
struct StoredFileTests {
    @Test("RNG-03 RNG-04: ranges beyond 4 GiB of a sparse file are correct")
    func large() throws {
        try withServer { server in
            let size = (5 << 30) + 3
            let tail = Array("end".utf8)
            if let shared = server.shared {
                try server.publish([UInt8](repeating: 0, count: 8 << 20), as: "zeros.bin")
                try shared.repeatObject(of: "zeros.bin", times: 640, tail: tail, as: "large.bin")
            } else {
                try server.publish([], as: "large.bin")
                try server.data.writeSparse(tail, at: size - tail.count, of: "large.bin")
            }
            let connection = try server.connect()
            let head = try connection.exchange(Request("HEAD", "/files/large.bin"))
            #expect(head.value("Content-Length") == "\(size)")
            for (range, first, content) in [
                ("bytes=-4", size - 4, [0] + tail), ("bytes=\(5 << 30)-", 5 << 30, tail),
                ("bytes=4294967295-4294967297", 4_294_967_295, [0, 0, 0]),
            ] {
                let response = try connection.exchange(Request("GET", "/files/large.bin", [("Range", range)]))
                #expect(response.status == 206)
                #expect(response.value("Content-Range") == "bytes \(first)-\(first + content.count - 1)/\(size)")
                #expect(response.content == content)
            }
            let several = try connection.exchange(
                Request("GET", "/files/large.bin", [("Range", "bytes=0-0,\(5 << 30)-")]))
            #expect(several.parts?.map(\.content) == [[0], tail])
        }
    }

    @Test(
        "APP-23 RNG-19: content type, coding and language of an upload apply only to the version that it published")
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
                // Digest and ranges refer to the coded bytes.
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
            let completion = Request.append(.v8, location, at: 300, complete: true, .bytes(Array(content[300...])))
            #expect(try server.exchange(completion).status == 201)
            let parts = try expectMetadata("parts.txt", true)
            try server.restart()
            #expect(try expectMetadata("plain.txt", true) == first)
            #expect(try expectMetadata("parts.txt", true) == parts)
            // The same bytes are uploaded again, without these fields: this is another version.
            try server.publish(content, as: "plain.txt")
            let second = try expectMetadata("plain.txt", false)
            #expect(second != first)
            if server.shared != nil { return }
            // A user replaces the file with another one.
            try server.place(content, as: "other.txt")
            #expect(rename(server.path(of: "other.txt"), server.path(of: "parts.txt")) == 0)
            #expect(try expectMetadata("parts.txt", false) != parts)
            // The file is removed, and a user creates a new file of the same name.
            #expect(try server.exchange(Request("PUT", "/files/x.txt", metadata, .bytes(content))).status == 201)
            #expect(try server.exchange(Request("DELETE", "/files/x.txt")).status == 204)
            try server.place(content, as: "x.txt")
            _ = try expectMetadata("x.txt", false)
        }
    }

    @Test("DELETE removes a file, obeys conditions, and does not remove anything but files")
    func deletion() throws {
        try withServer { server in
            try server.publish([1], as: "dir/f.txt")
            try server.setModified("dir/f.txt", to: 1_700_000_000)
            let tag = try #require(try server.download("dir/f.txt").value("ETag"))
            func status(_ target: String, _ fields: [(String, String)] = []) throws -> Int {
                try server.exchange(Request("DELETE", target, fields)).status
            }
            for field in [
                ("If-Match", "\"a\""), ("If-Match", "W/" + tag), ("If-None-Match", "*"), ("If-None-Match", tag),
                ("If-Unmodified-Since", "Tue, 14 Nov 2023 22:13:19 GMT"),
            ] {
                let result = try status("/files/dir/f.txt", [field])
                #expect(result == 412, "\(field)")
                #expect(server.published("dir/f.txt") == [1], "\(field)")
            }
            for (target, expected) in [
                ("/files/none", 404), ("/files/dir/none", 404), ("/files/none/f.txt", 404), ("/files/dir", 409),
                ("/files/dir/", 405), ("/files/", 405), ("/files", 405), ("/files/dir/f.txt/x", 404),
            ] {
                let result = try status(target)
                #expect(result == expected, "\(target)")
            }
            let match = try status("/files/dir/f.txt", [("If-Match", tag)])
            #expect(match == 204)
            #expect(server.published("dir/f.txt") == nil)
            let again = try status("/files/dir/f.txt")
            #expect(again == 404)
            #expect(try server.publish([2], as: "dir/f.txt").status == 201)
        }
    }

    @Test("Clients that propose the same name at the same time get different files")
    func simultaneous() throws {
        try withServer { server in
            let connections = try (0..<12).map { _ in try server.connect() }
            for (number, connection) in connections.enumerated() {
                let head = [("Content-Disposition", "attachment; filename=f.bin")]
                try connection.send(Request("POST", "/files/", head, .declared(2)))
                try connection.send([UInt8(number)])
            }
            for connection in connections { try connection.send([0xFF]) }
            let locations = try connections.map { try #require(try $0.readResponse().location) }
            #expect(Set(locations).count == 12)
            for (number, location) in locations.enumerated() {
                #expect(try server.exchange(.get(location)).content == [UInt8(number), 0xFF])
            }
        }
    }
}
