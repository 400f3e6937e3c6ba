import ConformanceKit
import FoundationEssentials
import HTTPTestSupport
import Testing

/// Untrusted paths and file names. The harness verifies that names do not leave a collection. These tests verify the files
/// in the data directory and the paths of our server, which the harness cannot know.
@Suite("Names and paths", .timeLimit(.minutes(30)))
struct NameTests {
    /// Paths that lead outside files/, are ambiguous, or are invalid.
    private static let badPaths: [String] = [
        "/files/../secret", "/files/..", "/files/../", "/files/%2e%2e/secret", "/files/%2E%2E/secret",
        "/files/.%2e/secret",
        "/files/..%2fsecret", "/files/..%2Fsecret", "/files/%2e%2e%2fsecret", "/files/a/../../secret", "/files/./f",
        "/files/%2e/f", "/files/a/./f", "/files/a%2fb", "/files/a%2Fb", "/files/..%5csecret", "/files/a%5Cb",
        "/files/a\\b",
        "/files/..\\secret", "/files//f", "/files//", "//files/f", "/files/a//b", "/files/%00", "/files/f%00.txt",
        "/files/%0a", "/files/a%0d%0aX:1", "/files/%7f", "/files/%c2%80", "/files/%ff", "/files/%c0%ae%c0%ae/secret",
        "/files/%c0%af", "/files/%e0%80%af", "/files/%ed%a0%80", "/files/%", "/files/%2", "/files/%zz", "/files/%u002e",
    ]

    @Test(
        "SEC-04 SEC-14: no spelling of a path leaves the root or is ambiguous",
        arguments: ["GET", "HEAD", "PUT", "DELETE", "POST"])
    func traversal(method: String) throws {
        try withService { server in
            let secret = Array("secret".utf8)
            // The data directory and the directory that contains it.
            let directories = [server.directory.path, server.data.path]
            for directory in directories {
                #expect(FileManager.default.createFile(atPath: directory + "/secret", contents: Data(secret)))
            }
            for path in Self.badPaths {
                let takesContent = method == "PUT" || method == "POST"
                let response = try server.exchange(Request(method, path, [], takesContent ? .bytes([1]) : .none))
                #expect([400, 404, 405].contains(response.status), "\(method) \(path): \(response.status)")
                #expect(!response.text.contains("secret"), "\(path)")
                #expect(!response.text.contains(server.directory.path), "\(path)")
            }
            #expect(server.data.publishedNames().isEmpty)
            for directory in directories {
                #expect(FileManager.default.contents(atPath: directory + "/secret") == Data(secret))
            }
        }
    }

    @Test("SEC-14 OFF-12: no spelling of an upload's name leads to another file")
    func uploadNames() throws {
        try withService { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let name = try #require(location.split(separator: "/").last.map(String.init))
            let targets = [
                "/uploads/..%2f..%2fetc%2fpasswd", "/uploads/../onward.sqlite", "/uploads/%2e%2e", "/uploads/\(name)/",
                "/uploads/\(name)%00",
                "/uploads/./\(name)", "/uploads//\(name)", "/uploads/\(name)x", "/uploads/\(name.dropLast())",
                "/uploads/%20\(name)",
                "/uploads/\(name)/x", "/uploads/" + String(repeating: "a", count: 5000), "/uploads/%ff", "/uploads/*",
                "/uploads/",
            ]
            for target in targets {
                for method in ["HEAD", "GET", "DELETE", "PATCH"] {
                    let response = try server.exchange(
                        method == "PATCH"
                            ? .append(.v8, target, at: 1, complete: true, .bytes([2])) : Request(method, target))
                    #expect((400..<500).contains(response.status), "\(method) \(target)")
                    #expect(!response.fields.contains("Upload-Offset"))
                }
            }
            #expect(try server.retrieve(location).offset == 1)
        }
    }

    @Test("OFF-13 CAN-04 RED-01: no request on an upload is redirected")
    func noRedirection() throws {
        try withService { server in
            let location = try server.begin()
            for target in [location, location + "/", location + "?x=y", "/uploads", "/uploads/"] {
                for method in ["HEAD", "GET", "DELETE"] {
                    let response = try server.exchange(Request(method, target, Request.versionField(.v5)))
                    #expect(!(300..<400).contains(response.status), "\(method) \(target)")
                }
            }
        }
    }

    @Test("SEC-14: an upload's name is case-sensitive", arguments: [true, false])
    func uploadNameCase(percentEncoded: Bool) throws {
        try withService { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let name = try #require(location.split(separator: "/").last.map(String.init))
            if percentEncoded {
                // The percent-encoded name is equivalent (RFC 3986 section 6.2.2.2).
                let first = try #require(name.utf8.first)
                let response = try server.retrieve("/uploads/%" + String(first, radix: 16) + name.dropFirst())
                #expect(response.offset == 1 || response.status == 404)
            } else if name != name.uppercased() {
                #expect(try server.retrieve("/uploads/" + name.uppercased()).status == 404)
            }
        }
    }

    @Test("SEC-04: file names of 255 bytes are stored, longer names are refused", arguments: [255, 256, 5000])
    func longNames(count: Int) throws {
        try withService { server in
            let name = String(repeating: "n", count: count)
            let response = try server.exchange(.creation(.v8, "PUT", "/files/\(name)", complete: true, .bytes([1])))
            #expect(count == 255 ? response.status == 201 : [400, 414].contains(response.status))
            #expect(server.data.publishedNames() == (count == 255 ? [name] : []))
        }
    }

    @Test("missing directories of a path are created; a path through a file is refused")
    func directories() throws {
        try withService { server in
            #expect(
                try server.exchange(.creation(.v8, "PUT", "/files/a/b/c", complete: true, .bytes([1]))).status == 201)
            #expect(server.data.published("a/b/c") == [1])
            let through = try server.exchange(.creation(.v8, "PUT", "/files/a/b/c/d", complete: true, .bytes([1])))
            #expect((400..<500).contains(through.status))
            let onto = try server.exchange(.creation(.v8, "PUT", "/files/a/b", complete: true, .bytes([1])))
            #expect((400..<500).contains(onto.status))
            let collection = try server.exchange(.creation(.v8, "PUT", "/files/a/b/", complete: true, .bytes([1])))
            #expect(collection.status == 405)
            #expect(server.data.published("a/b/c") == [1])
        }
    }

    @Test("an upload to a path below a file is refused before it is announced")
    func belowFile() throws {
        try withService { server in
            #expect(try server.exchange(Request("PUT", "/files/f", [], .bytes([1]))).status == 201)
            let response = try server.exchange(
                .creation(.v8, "PUT", "/files/f/below", complete: true, .bytes([1, 2])))
            #expect(response.status == 409)
            #expect(response.problem?.code == "parent-is-file")
            #expect(response.interim.isEmpty)
        }
    }

    @Test("names that differ in case, or use other scripts, belong to different files")
    func otherScripts() throws {
        try withService { server in
            let names = [
                "a", "A", "%C3%A9", "e%CC%81", "%F0%9F%90%9F", "a%20b", "a+b", "a%2Bb%3F", "a%23b", "a%25b",
                "%E6%97%A5%E6%9C%AC",
            ]
            for (number, name) in names.enumerated() {
                let response = try server.exchange(
                    .creation(.v8, "PUT", "/files/" + name, complete: true, .bytes([UInt8(number)])))
                #expect(response.status == 201, "\(name)")
                let location = try #require(response.location)
                #expect(try server.exchange(.get(location)).content == [UInt8(number)], "\(name) at \(location)")
            }
            for (number, name) in names.enumerated() {
                #expect(try server.exchange(.get("/files/" + name)).content == [UInt8(number)], "\(name)")
            }
            #expect(server.data.publishedNames().count == names.count)
        }
    }

    @Test("a form that a browser sends is refused, because its content is not a file")
    func form() throws {
        try withService { server in
            let response = try server.exchange(
                Request("POST", "/files/", [("Content-Type", "multipart/form-data; boundary=x")], .bytes([1, 2])))
            #expect(response.status == 415)
            #expect(response.problem?.code == "unsupported-media-type")
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("--reject-form-data refuses forms to files, too, with and without the fields of the draft")
    func rejectedForms() throws {
        let types = [
            "multipart/form-data; boundary=x", "Multipart/Form-Data", "multipart/form-data;boundary",
            "multipart / form-data",
        ]
        try withService(settings: .with { $0.shouldRejectFormData = true }) { server in
            for type in types {
                for target in ["/files/a", "/files/"] {
                    let method = target.hasSuffix("/") ? "POST" : "PUT"
                    let plain = try server.exchange(Request(method, target, [("Content-Type", type)], .bytes([1, 2])))
                    #expect(plain.status == 415, "\(type)")
                    #expect(plain.problem?.code == "unsupported-media-type")
                    #expect(plain.problem?.detail?.contains("curl -T") == true)
                    for complete in [true, false] {
                        let creation = Request.creation(.v8, method, target, complete: complete, .bytes([1, 2]))
                        let response = try server.exchange(creation.with("Content-Type", type))
                        #expect(response.status == 415, "\(type)")
                        #expect(response.complete == true && !response.fields.contains("Location"))
                    }
                }
            }
            let other = Request("PUT", "/files/a", [("Content-Type", "multipart/mixed; boundary=x")], .bytes([1]))
            #expect(try server.exchange(other).status == 201)
            #expect(server.data.publishedNames() == ["a"])
        }
        try withService { server in
            let form = Request("PUT", "/files/a", [("Content-Type", types[0])], .bytes([1]))
            let response = try server.exchange(form)
            #expect(response.status == 201)
        }
    }

    @Test("SEC-04: symbolic links in the data directory are not followed", arguments: ["GET", "HEAD", "PUT", "DELETE"])
    func symbolicLinks(method: String) throws {
        try withService { server in
            let outside = server.directory.path + "/outside"
            try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
            #expect(FileManager.default.createFile(atPath: outside + "/f", contents: Data([7])))
            #expect(try server.exchange(Request("PUT", "/files/x", [], .bytes([1]))).status == 201)
            try FileManager.default.createSymbolicLink(
                atPath: server.data.path + "/files/dir", withDestinationPath: outside)
            try FileManager.default.createSymbolicLink(
                atPath: server.data.path + "/files/file", withDestinationPath: outside + "/f")
            for target in ["/files/dir/f", "/files/dir/new", "/files/file", "/files/dir/"] {
                let response = try server.exchange(Request(method, target, [], method == "PUT" ? .bytes([9]) : .none))
                #expect(response.content != [7], "\(method) \(target)")
            }
            #expect(makePipe(server.data.path(of: "fifo")))
            for target in ["/files/file", "/files/fifo"] {
                let response = try server.exchange(Request(method, target, [], method == "PUT" ? .bytes([9]) : .none))
                #expect(response.status == (method == "PUT" ? 409 : 404))
                if method == "PUT" { #expect(response.problem?.code == "target-is-no-file") }
            }
            let posted = try server.exchange(
                Request("POST", "/files/dir/", [("Content-Disposition", "inline; filename=posted")], .bytes([9])))
            #expect(!posted.isSuccessful)
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == ["f"])
            #expect(FileManager.default.contents(atPath: outside + "/f") == Data([7]))
        }
    }

    @Test(
        "SEC-04: a proposed file name is made safe",
        arguments: [
            "filename=\"../../etc/passwd\"", "filename=\"a\\\\b\"", "filename=\"C:x\"", "filename=\"C:\\\\a\\\\x\"",
            "filename=CON",
            "filename=\"nul.txt\"", "filename*=UTF-8''..%2fx", "filename*=UTF-8''%2e%2e%2f%2e%2e%2fetc%2fshadow",
            "filename*=UTF-8''a%00b", "filename*=UTF-8''%E2%80%AEgnp.exe", "filename=\"..\"", "filename=\".\"",
            "filename=\"\"",
            "filename=\".htaccess\"", "filename=\"x:y\"", "filename=\"a/\"", "filename=\"  \"",
            "filename*=UTF-8''%ff%fe",
            "filename=\"" + String(repeating: "n", count: 5000) + ".txt\"", "nothing", "filename=\"<script>.html\"",
        ])
    func proposedNames(parameter: String) throws {
        try withService { server in
            let request = Request.creation(.v8, "POST", "/files/in/", complete: true, .bytes([1]))
                .with("Content-Disposition", "attachment; " + parameter)
            let response = try server.exchange(request)
            #expect(response.status == 201)
            let names = server.data.publishedNames().filter { $0 != "in" }
            #expect(names.count == 1)
            let name = try #require(names.first)
            #expect(name.hasPrefix("in/"))
            let own = name.dropFirst(3)
            #expect(!own.contains("/") && !own.contains("\\") && !own.contains(":") && !own.hasPrefix("."))
            #expect((1...255).contains(own.utf8.count))
            #expect(own.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x202A...0x202E).contains($0.value) })
            #expect(!["con", "nul", "nul.txt"].contains(own.lowercased()))
            #expect(try server.exchange(.get(try #require(response.location))).content == [1])
            let written = try FileManager.default.contentsOfDirectory(atPath: server.directory.path)
            #expect(written == ["data"])
        }
    }

    @Test("a file name that is in use is made unique; no file is overwritten")
    func taken() throws {
        try withService { server in
            var locations: Set<String> = []
            for number in 0..<5 {
                let request = Request.creation(.v8, "POST", "/files/", complete: true, .bytes([UInt8(number)]))
                    .with("Content-Disposition", "inline; filename=\"a b.txt\"")
                let location = try #require(try server.exchange(request).location)
                #expect(locations.insert(location).inserted)
                #expect(try server.exchange(.get(location)).content == [UInt8(number)])
            }
            #expect(server.data.published("a b.txt") == [0])
            #expect(server.data.publishedNames().allSatisfy { $0.hasSuffix(".txt") })
        }
    }

    @Test("a listing escapes file names")
    func listing() throws {
        try withService { server in
            let name = "%3Cimg%20src=x%20onerror=alert(1)%3E"
            #expect(try server.exchange(Request("PUT", "/files/" + name, [], .bytes([1]))).status == 201)
            let page = try server.exchange(.get("/files/").with("Accept", "text/html,*/*"))
            #expect(!page.text.contains("<img src=x") && page.text.contains("&lt;img src=x"))
            let json = try server.exchange(.get("/files/").with("Accept", "application/json"))
            #expect(json.value("Content-Type")?.hasPrefix("application/json") == true)
            #expect(json.text.contains("<img src=x"))
        }
    }
}
