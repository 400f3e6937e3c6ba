import ConformanceKit
import FoundationEssentials
import HTTPTestSupport
import Testing

/// `POST` to a collection: the server chooses the name.
@Suite("Creation in collections", .blocking)
struct CollectionTests {
    private static func post(_ disposition: String?, _ content: String = "content", in directory: String = "")
        -> Request
    {
        let fields = disposition.map { [("Content-Disposition", $0)] } ?? []
        return Request("POST", "/files/" + directory, fields, .bytes(Array(content.utf8)))
    }

    /// The names of the files in a directory.
    private func names(_ server: any TestedService, in directory: String) throws -> [String] {
        server.data.publishedNames().filter { $0.hasPrefix(directory + "/") }.map {
            String($0.dropFirst(directory.count + 1))
        }
    }

    @Test("CRE-24: the proposed name is used, made unique if necessary, and Location is the URL of the file")
    func unique() throws {
        try withService { server in
            var locations: [String] = []
            for number in 0..<30 {
                let response = try server.exchange(
                    Self.post("inline; filename=\"re port.tar.gz\"", "content \(number)", in: "in/"))
                #expect(response.status == 201)
                let location = try #require(response.location)
                #expect(location.hasPrefix("/files/in/re%20port"))
                #expect(location.hasSuffix(".gz"))
                #expect(!locations.contains(location))
                locations.append(location)
                #expect(try server.exchange(.get(location)).text == "content \(number)")
            }
            #expect(locations[0] == "/files/in/re%20port.tar.gz")
            #expect(try names(server, in: "in").count == 30)
        }
    }

    @Test("Without a usable name the server chooses a random one")
    func random() throws {
        try withService { server in
            var locations: Set<String> = []
            for disposition in [
                nil, "inline", "attachment; filename=\"\"", "attachment; filename=\"..\"", "attachment; filename=\"/\"",
                "attachment; filename=\"...\"", "filename=x", "junk;;;", "attachment; filename*=UTF-8''%2e%2e",
            ] {
                let response = try server.exchange(Self.post(disposition))
                #expect(response.status == 201, "\(disposition ?? "none")")
                let location = try #require(response.location)
                #expect(location.utf8.count >= "/files/".utf8.count + 16, "\(location)")
                #expect(locations.insert(location).inserted)
                #expect(try server.exchange(.get(location)).text == "content")
            }
        }
    }

    @Test("SEC-04: with any proposed name, the file stays in its collection, under a harmless name")
    func hostile() throws {
        let long = String(repeating: "x", count: 5000)
        let cases: [(disposition: String, name: String?)] = [
            ("attachment; filename=\"../../etc/passwd\"", "passwd"), ("attachment; filename=\"/etc/passwd\"", "passwd"),
            ("attachment; filename=\"a\\\\b\"", "b"), ("attachment; filename=\"C:x\"", "x"),
            ("attachment; filename=\"C:\\\\dir\\\\x.txt\"", "x.txt"), ("attachment; filename=\"CON\"", "_CON"),
            ("attachment; filename=\"nul.txt\"", "_nul.txt"), ("attachment; filename=\".bashrc\"", "_bashrc"),
            ("attachment; filename=\"a<b>c|d?e*f.txt\"", "a_b_c_d_e_f.txt"),
            ("attachment; filename*=UTF-8''..%2f..%2fpasswd", "passwd"),
            ("attachment; filename*=UTF-8''a%00b.txt", "ab.txt"),
            ("attachment; filename*=UTF-8''a%0d%0aX-Injected%3A%201.txt", "aX-Injected_ 1.txt"),
            ("attachment; filename*=UTF-8''cod%E2%80%AEgpj.exe", "codgpj.exe"),
            ("attachment; filename=\"plain.txt\"; filename*=UTF-8''%E2%82%AC%20rates.txt", "€ rates.txt"),
            ("attachment; filename=\"\(long).txt\"", nil), ("attachment; filename=\"%2e%2e%2fx\"", nil),
            ("attachment; filename=\"trailing. . .\"", "trailing"), ("INLINE; FILENAME=UPPER.TXT", "UPPER.TXT"),
        ]
        try withService { server in
            for (number, (disposition, name)) in cases.enumerated() {
                let directory = "d\(number)"
                let response = try server.exchange(Self.post(disposition, in: directory + "/"))
                #expect(response.status == 201, "\(disposition.prefix(80))")
                let entries = try names(server, in: directory)
                #expect(entries.count == 1, "\(disposition.prefix(80))")
                if let name { #expect(entries == [name], "\(disposition.prefix(80))") }
                #expect(entries.allSatisfy { $0.utf8.count <= 255 })
                let location = try #require(response.location)
                #expect(location.hasPrefix("/files/\(directory)/"))
                #expect(try server.exchange(.get(location)).text == "content")
                #expect(!response.fields.contains("X-Injected"))
            }
            let root = try FileManager.default.contentsOfDirectory(atPath: server.data.path)
            #expect(!root.contains("passwd"))
        }
    }

    @Test("SEC-18: a request that proposes a name with a bare CR gets 400, so that no name can split a response")
    func controls() throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(
                "POST /files/ HTTP/1.1\r\nHost: localhost\r\nContent-Disposition: attachment; filename=\"a\rb\"\r\n"
                    + "Content-Length: 1\r\n\r\nx")
            #expect(try connection.readResponse().status == 400)
        }
    }

    @Test(
        "APP-04: a resumable creation in a collection, in every version, publishes the file under the proposed name",
        arguments: Interop.allCases)
    func resumable(version: Interop) throws {
        try withService { server in
            var creation = Request.creation(version, "POST", "/files/in/", complete: false, .bytes([1, 2, 3]))
            creation.fields.append(("Content-Disposition", "inline; filename=\"f.bin\""))
            let location = try #require(try server.exchange(creation).location)
            #expect(location.hasPrefix("/uploads/"))
            let response = try server.exchange(.append(version, location, at: 3, complete: true, .bytes([4, 5])))
            #expect(response.isSuccessful)
            #expect(response.states(complete: true, in: version))
            #expect(response.location == "/files/in/f.bin" || response.value("Content-Location") == "/files/in/f.bin")
            #expect(server.data.published("in/f.bin") == [1, 2, 3, 4, 5])
        }
    }

    @Test(
        "VER-11: up to version 6, 201 has the upload's URL in Location and the file's URL in Content-Location",
        arguments: Interop.allCases)
    func locations(version: Interop) throws {
        try withService { server in
            var creation = Request.creation(version, "POST", "/files/", complete: true, .bytes([1, 2, 3]))
            creation.fields.append(("Content-Disposition", "inline; filename=\"f.bin\""))
            let response = try server.exchange(creation)
            #expect(response.status == 201)
            if version.rawValue <= 6 {
                #expect(response.location?.hasPrefix("/uploads/") == true)
                #expect(response.value("Content-Location") == "/files/f.bin")
            } else {
                #expect(response.location == "/files/f.bin")
            }
        }
    }

    @Test("POST is allowed on collections only, and no other method creates a file in a collection")
    func methods() throws {
        try withService { server in
            try server.publish([1], as: "f.bin")
            let response = try server.exchange(Request("POST", "/files/f.bin", [], .bytes([2])))
            #expect(response.status == 405)
            #expect(Set(response.list("Allow")) == ["get", "head", "put", "delete", "options"])
            let collection = try server.exchange(Request("PUT", "/files/", [], .bytes([2])))
            #expect(Set(collection.list("Allow")) == ["get", "head", "post", "options"])
            #expect(server.data.published("f.bin") == [1])
            let below = try server.exchange(Self.post(nil, in: "f.bin/"))
            #expect(below.status == 409)
        }
    }
}
