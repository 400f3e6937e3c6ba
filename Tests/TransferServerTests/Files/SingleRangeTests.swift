import ConformanceKit
import HTTPTestSupport
import Testing

/// Requests with one range (RFC 9110 section 14).
@Suite("Single ranges", .blocking)
struct SingleRangeTests {
    private static let digits = Array("0123456789".utf8)

    @Test(
        "RNG-03 RNG-04 RNG-05 RNG-09 RNG-21: a response to a single range has exactly the bytes of the range",
        arguments: Transport.allCases)
    func single(transport: Transport) throws {
        let cases: [(range: String, contentRange: String, content: String)] = [
            ("bytes=2-4", "bytes 2-4/10", "234"), ("bytes=0-0", "bytes 0-0/10", "0"),
            ("bytes=9-9", "bytes 9-9/10", "9"), ("bytes=0-9", "bytes 0-9/10", "0123456789"),
            ("bytes=0-", "bytes 0-9/10", "0123456789"), ("bytes=5-", "bytes 5-9/10", "56789"),
            ("bytes=5-999", "bytes 5-9/10", "56789"), ("bytes=5-10", "bytes 5-9/10", "56789"),
            ("bytes=-3", "bytes 7-9/10", "789"), ("bytes=-1", "bytes 9-9/10", "9"),
            ("bytes=-10", "bytes 0-9/10", "0123456789"), ("bytes=-999", "bytes 0-9/10", "0123456789"),
            ("bytes=002-0004", "bytes 2-4/10", "234"), ("Bytes=2-4", "bytes 2-4/10", "234"),
            ("BYTES=2-4", "bytes 2-4/10", "234"),
            // Empty members of a list are ignored (RFC 9110 section 5.6.1.2).
            ("bytes=2-4,", "bytes 2-4/10", "234"), ("bytes=2-4, ,", "bytes 2-4/10", "234"),
            ("bytes=,2-4", "bytes 2-4/10", "234"),
            // Only one of the ranges can be satisfied.
            ("bytes=2-4,10-", "bytes 2-4/10", "234"), ("bytes=2-4, 99-100, -0", "bytes 2-4/10", "234"),
            // Positions at and beyond the largest signed integer of 64 bits.
            ("bytes=8-9223372036854775807", "bytes 8-9/10", "89"),
            ("bytes=8-9223372036854775808", "bytes 8-9/10", "89"),
            ("bytes=8-18446744073709551616", "bytes 8-9/10", "89"),
            ("bytes=8-99999999999999999999999999999999999999", "bytes 8-9/10", "89"),
            ("bytes=-9223372036854775807", "bytes 0-9/10", "0123456789"),
            ("bytes=-18446744073709551617", "bytes 0-9/10", "0123456789"),
            ("bytes=2-4,18446744073709551616-", "bytes 2-4/10", "234"),
        ]
        try withService(transport) { server in
            try server.publish(Self.digits, as: "f.bin")
            for (range, contentRange, content) in cases {
                let response = try server.exchange(Request("GET", "/files/f.bin", [("Range", range)]))
                #expect(response.status == 206, "\(range)")
                #expect(response.value("Content-Range") == contentRange, "\(range)")
                #expect(response.text == content, "\(range)")
                #expect(response.value("Content-Length") == "\(content.utf8.count)", "\(range)")
                #expect(response.value("Content-Type") == "application/octet-stream", "\(range)")
            }
        }
    }

    @Test(
        "RNG-06 RNG-21 RNG-24: an unsatisfiable range gets 416 with the size, and none of the file's bytes",
        arguments: Transport.allCases)
    func unsatisfiable(transport: Transport) throws {
        let ranges = [
            "bytes=10-", "bytes=10-20", "bytes=-0", "bytes=999-", "bytes=10-,20-30", "bytes=-0,-00",
            "bytes=9223372036854775807-", "bytes=9223372036854775808-", "bytes=18446744073709551615-",
            "bytes=18446744073709551616-", "bytes=18446744073709551618-18446744073709551620",
            "bytes=340282366920938463463374607431768211456-",
        ]
        try withService(transport) { server in
            try server.publish(Self.digits, as: "f.bin")
            for range in ranges {
                let response = try server.exchange(Request("GET", "/files/f.bin", [("Range", range)]))
                #expect(response.status == 416, "\(range)")
                #expect(response.value("Content-Range") == "bytes */10", "\(range)")
                #expect(response.problem?.status == 416, "\(range)")
                #expect(response.problem?.code == "range-not-satisfiable", "\(range)")
                #expect(response.content.firstRange(of: Self.digits) == nil, "\(range)")
            }
        }
    }

    @Test("RNG-02 RNG-07 RNG-23: Range is ignored if its unit is unknown, its set is invalid, or it occurs twice")
    func ignored() throws {
        let values: [[String]] = [
            ["items=0-1"], ["byte=0-1"], ["seconds=1-"], ["bytes"], ["0-1"], [""],
            ["bytes=5-2"], ["bytes=a-b"], ["bytes="], ["bytes=,"], ["bytes=-"], ["bytes=--1"], ["bytes=1"],
            ["bytes=+1-2"], ["bytes=0x1-2"], ["bytes=1.0-2"], ["bytes=1 -2"], ["bytes=1- 2"], ["bytes =1-2"],
            ["bytes=0-1;2-3"], ["bytes=0-1,a"], ["bytes=0-1,5-2"], ["bytes=0-1,bytes=2-3"], ["bytes=0-1 2-3"],
            ["bytes=18446744073709551618-2"], ["bytes=٣-٤"],
            ["bytes=0-1", "bytes=2-3"], ["bytes=0-1", "bytes=0-1"], ["bytes=0-1", "items=2-3"],
        ]
        try withService { server in
            try server.publish(Self.digits, as: "f.bin")
            for lines in values {
                let response = try server.exchange(Request("GET", "/files/f.bin", lines.map { ("Range", $0) }))
                #expect(response.status == 200, "\(lines)")
                #expect(response.text == "0123456789", "\(lines)")
                #expect(!response.fields.contains("Content-Range"), "\(lines)")
            }
        }
    }

    @Test(
        "RNG-01 RNG-18: HEAD ignores Range, and its response has the fields of GET without Range",
        arguments: Transport.allCases)
    func head(transport: Transport) throws {
        try withService(transport) { server in
            try server.publish(Self.digits, as: "f.bin")
            let entire = try server.exchange(.get("/files/f.bin"))
            for range in [nil, "bytes=0-1", "bytes=10-", "bytes=0-0,4-5"] {
                let fields = range.map { [("Range", $0)] } ?? []
                let response = try server.exchange(Request("HEAD", "/files/f.bin", fields))
                #expect(response.status == 200)
                for name in ["Content-Length", "Content-Type", "ETag", "Last-Modified", "Accept-Ranges"] {
                    #expect(response.value(name) != nil && response.value(name) == entire.value(name), "\(name)")
                }
                #expect(!response.fields.contains("Content-Range"))
            }
            #expect(entire.value("Accept-Ranges") == "bytes")
            // The responses to HEAD had no content, so the next response is read correctly.
            #expect(try server.exchange(.get("/files/f.bin")).text == "0123456789")
        }
    }

    @Test("RNG-01: PUT, POST and DELETE ignore Range")
    func otherMethods() throws {
        try withService { server in
            let range = ("Range", "bytes=2-4")
            #expect(try server.exchange(Request("PUT", "/files/f.bin", [range], .bytes(Self.digits))).status == 201)
            #expect(server.data.published("f.bin") == Self.digits)
            let posted = try server.exchange(Request("POST", "/files/", [range], .bytes(Self.digits)))
            #expect(posted.status == 201)
            let location = try #require(posted.location)
            #expect(try server.exchange(.get(location)).content == Self.digits)
            #expect(try server.exchange(Request("DELETE", "/files/f.bin", [range])).status == 204)
            #expect(server.data.published("f.bin") == nil)
        }
    }

    @Test("RNG-22: for an empty file a suffix range is satisfiable, and no other range", arguments: Transport.allCases)
    func empty(transport: Transport) throws {
        try withService(transport) { server in
            try server.publish([], as: "empty.bin")
            for range in [nil, "bytes=-5", "bytes=-1", "items=0-0", "bytes=0-,-1"] {
                let fields = range.map { [("Range", $0)] } ?? []
                let response = try server.exchange(Request("GET", "/files/empty.bin", fields))
                #expect(response.status == 200, "\(range ?? "none")")
                #expect(response.value("Content-Length") == "0")
                #expect(response.content.isEmpty)
            }
            for range in ["bytes=0-", "bytes=0-0", "bytes=5-9", "bytes=-0"] {
                let response = try server.exchange(Request("GET", "/files/empty.bin", [("Range", range)]))
                #expect(response.status == 416, "\(range)")
                #expect(response.value("Content-Range") == "bytes */0", "\(range)")
            }
        }
    }

    @Test("RNG-17: a 206 response has Date and the same representation fields as the 200 response")
    func fields() throws {
        try withService { server in
            try server.publish(Self.digits, as: "f.html")
            let entire = try server.download("f.html")
            for range in ["bytes=2-4", "bytes=0-0,5-5"] {
                let part = try server.download("f.html", [("Range", range)])
                #expect(part.status == 206)
                #expect(part.value("Date") != nil)
                let names = [
                    "ETag", "Last-Modified", "Cache-Control", "Expires", "Content-Location", "Vary", "Accept-Ranges",
                    "X-Content-Type-Options", "Content-Security-Policy", "Content-Disposition",
                ]
                for name in names { #expect(part.fields[name] == entire.fields[name], "\(name)") }
            }
        }
    }
}
