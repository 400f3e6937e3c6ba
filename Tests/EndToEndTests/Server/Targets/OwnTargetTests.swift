import ConformanceKit
import HTTPSemantics
import ResumableUpload
import Testing
import TransferServer

/// The server as a library, with a target resource of the embedding program.
@Suite("Targets of an embedding program", .blocking)
struct OwnTargetTests {
    @Test(
        "CRE-08 CRE-19: every method with content creates an upload; the target gets method, metadata and content",
        arguments: ["POST", "PUT", "PATCH"], Interop.allCases)
    func methods(method: String, version: Interop) throws {
        let target = RecordingTarget()
        let content = Payload.bytes(5000)
        try withTarget(target) { host in
            let metadata = [
                ("Content-Type", "text/x; charset=utf-8"), ("Content-Language", "de"),
                ("Content-Disposition", "inline; filename=\"a.x\""),
            ]
            let location = try host.begin(version, method, "/inbox/a%20doc", Array(content[..<2000]), metadata)
            #expect(location.hasPrefix("/uploads/"))
            #expect(target.calls.isEmpty)
            let response = try host.exchange(
                .append(version, location, at: 2000, complete: true, .bytes(Array(content[2000...]))))
            #expect(response.status == 203)
            #expect(response.states(complete: true, in: version))
            #expect(response.text == "\(method) \(content.sha256)\n")
            let call = try #require(target.calls.first)
            #expect(target.calls.count == 1)
            #expect(call.method == method)
            #expect(call.path == "/inbox/a%20doc")
            #expect(call.content == content)
            for (name, value) in metadata { #expect(call.fields[name] == value, "\(name)") }
        }
    }

    @Test("APP-23: the target gets the content coding of the creation and the coded bytes")
    func coding() throws {
        let target = RecordingTarget()
        let coded: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        try withTarget(target) { host in
            let location = try host.begin(
                .v8, "POST", "/inbox/doc", Array(coded[..<10]), [("Content-Encoding", "gzip")])
            let response = try host.exchange(
                .append(.v8, location, at: 10, complete: true, .bytes(Array(coded[10...]))))
            #expect(response.status == 203)
            #expect(target.calls.map(\.content) == [coded])
            #expect(target.calls.first?.fields["Content-Encoding"] == "gzip")
        }
    }

    @Test("CRE-12: from version 7 on, Location in a response with ?1 is the Location of the target")
    func ownLocation() throws {
        for version in [Interop.v7, .v8] {
            let target = RecordingTarget { _ in HTTPSemantics.Response(status: 201, fields: ["Location": "/doc/1"]) }
            try withTarget(target) { host in
                let connection = try host.connect()
                let response = try connection.exchange(
                    .creation(version, "POST", "/inbox/", complete: true, .bytes([1, 2, 3])))
                #expect(response.status == 201)
                #expect(response.location == "/doc/1")
                #expect(response.complete == true)
                #expect(response.interim.first?.location?.hasPrefix("/uploads/") == true)
                // The same applies to the last append.
                let location = try host.begin(version, "POST", "/inbox/", [1])
                let appended = try host.exchange(.append(version, location, at: 1, complete: true, .bytes([2])))
                #expect(appended.location == "/doc/1")
            }
        }
    }

    @Test(
        "VER-11: up to version 6 Location is the upload's URL, and the target's Location becomes Content-Location",
        arguments: [Interop.v3, .v4, .v5, .v6])
    func locationClash(version: Interop) throws {
        let target = RecordingTarget { _ in HTTPSemantics.Response(status: 201, fields: ["Location": "/doc/1"]) }
        try withTarget(target) { host in
            let response = try host.exchange(.creation(version, "POST", "/inbox/", complete: true, .bytes([1, 2, 3])))
            #expect(response.status == 201)
            let location = try #require(response.location)
            #expect(location.hasPrefix("/uploads/"))
            #expect(response.interim.first?.location == location)
            #expect(response.value("Content-Location") == "/doc/1")
            #expect(response.offset == 3)
            #expect(response.states(complete: true, in: version))
            let state = try host.exchange(.retrieval(version, location))
            #expect(state.states(complete: true, in: version))
        }
    }

    @Test("CRE-20: content below min-size goes to the target without an upload resource")
    func declined() throws {
        let target = RecordingTarget()
        try withTarget(target, limits: UploadLimits(minSize: 1000)) { host in
            let small = try host.exchange(.creation(.v8, "POST", "/inbox/doc", complete: true, .bytes([1, 2, 3])))
            #expect(small.interim.isEmpty)
            #expect(small.status == 203)
            #expect(small.complete == true)
            #expect(target.calls.map(\.content) == [[1, 2, 3]])
            let large = try host.exchange(
                .creation(.v8, "POST", "/inbox/doc", complete: true, .bytes(Payload.bytes(1000))))
            #expect(large.interim.first?.location != nil)
        }
    }

    @Test("CRE-20 LIM-17: a method that the target does not support is refused with Allow, and nothing is created")
    func unknownMethods() throws {
        let target = RecordingTarget(methods: [.post])
        try withTarget(target) { host in
            for method in ["PUT", "PATCH", "GET", "DELETE"] {
                let request =
                    method == "PUT" || method == "PATCH"
                    ? Request.creation(.v8, method, "/inbox/doc", complete: false, .bytes([1]))
                    : Request(method, "/inbox/doc")
                let response = try host.exchange(request)
                #expect(response.status == 405, "\(method)")
                #expect(response.value("Allow") == "POST")
                #expect(!response.interim.contains { $0.status == 104 })
            }
            #expect(target.proposals == 0)
        }
    }

    @Test("CRE-22: a target that refuses before the content ends the upload with its own response and ?1")
    func earlyAnswer() throws {
        let target = RecordingTarget(
            acceptance: { _ in .refuse(HTTPSemantics.Response(status: 422, content: Array("not this\n".utf8))) })
        try withTarget(target) { host in
            for complete in [true, false] {
                let connection = try host.connect()
                try connection.send(.creation(.v8, "POST", "/inbox/doc", complete: complete, .declared(100_000_000)))
                let response = try connection.readResponse()
                #expect(response.status == 422)
                #expect(response.complete == true)
                #expect(response.text == "not this\n")
                #expect(!response.interim.contains { $0.status == 104 })
                #expect(!response.fields.contains("Location"))
            }
            let plain = try host.exchange(Request("POST", "/inbox/doc", [], .bytes([1])))
            #expect(plain.status == 422)
            #expect(!plain.fields.contains("Upload-Complete"))
            #expect(target.calls.isEmpty)
        }
    }

    @Test(
        "CMP-03 APP-28: a failing target gives 500 and ?1, and does not run again", arguments: Interop.allCases)
    func failing(version: Interop) throws {
        let target = RecordingTarget { _ in throw RecordingTarget.Failure() }
        try withTarget(target) { host in
            let location = try host.begin(version, "POST", "/inbox/doc", [1, 2, 3])
            let response = try host.exchange(.append(version, location, at: 3, complete: true, .bytes([4])))
            #expect(response.status == 500)
            #expect(response.states(complete: true, in: version))
            #expect(response.problem?.code == "target-failed")
            #expect(!response.text.contains("Failure"), "the response reveals nothing internal")
            #expect(try host.exchange(.retrieval(version, location)).states(complete: true, in: version))
            let again = try host.exchange(.append(version, location, at: 4, complete: true, .bytes([])))
            #expect(again.status >= 400)
            if again.complete == true { #expect(again.status == 500) }
            #expect(try host.exchange(.append(version, location, at: 4, complete: true, .bytes([5]))).status >= 400)
            #expect(target.calls.count == 1)
        }
    }

    @Test(
        "APP-04: the last append gets the same status, fields and content as a single request",
        arguments: Interop.allCases)
    func sameAnswer(version: Interop) throws {
        let target = RecordingTarget { call in
            HTTPSemantics.Response(
                status: 299, fields: ["Content-Type": "text/x", "X-A": "1", "X-A": "2", "Set-Cookie": "a=b"],
                content: call.content.reversed())
        }
        let content = Payload.bytes(3000)
        try withTarget(target) { host in
            let plain = try host.exchange(Request("POST", "/inbox/doc", [], .bytes(content)))
            let entire = try host.exchange(.creation(version, "POST", "/inbox/doc", complete: true, .bytes(content)))
            let location = try host.begin(version, "POST", "/inbox/doc", Array(content[..<1000]))
            let part = Array(content[1000..<2000])
            #expect(try host.exchange(.append(version, location, at: 1000, complete: false, .bytes(part))).isSuccessful)
            let last = try host.exchange(
                .append(version, location, at: 2000, complete: true, .bytes(Array(content[2000...]))))
            for response in [entire, last] {
                #expect(response.status == plain.status)
                #expect(response.content == plain.content)
                for name in ["Content-Type", "X-A", "Set-Cookie", "Content-Length"] {
                    #expect(response.fields.values(name) == plain.fields.values(name), "\(name)")
                }
                #expect(response.states(complete: true, in: version))
            }
            #expect(target.calls.count == 3)
        }
    }

    @Test("SEC-12: a scanning target gets the assembled content, however the upload was cut", arguments: [1, 5, 11])
    func scanning(cut: Int) throws {
        let pattern = Array("FORBIDDEN-CONTENT".utf8)
        let target = RecordingTarget { call in
            call.content.firstRange(of: pattern) == nil
                ? HTTPSemantics.Response(status: 201)
                : HTTPSemantics.Response(status: 422, content: Array("refused\n".utf8))
        }
        try withTarget(target) { host in
            let content = Payload.bytes(1000) + pattern + Payload.bytes(1000)
            let location = try host.begin(Array(content[..<(1000 + cut)]))
            let remaining = Array(content[(1000 + cut)...])
            let response = try host.exchange(.append(.v8, location, at: 1000 + cut, complete: true, .bytes(remaining)))
            #expect(response.status == 422)
            #expect(response.complete == true)
            let clean = try host.begin(Payload.bytes(10))
            #expect(try host.exchange(.append(.v8, clean, at: 10, complete: true, .bytes([]))).status == 201)
        }
    }
}
