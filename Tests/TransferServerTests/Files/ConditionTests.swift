import ConformanceKit
import HTTPSemantics
import HTTPTestSupport
import Testing

/// Conditional requests (RFC 9110 section 13).
@Suite("Conditions of downloads", .blocking)
struct ConditionTests {
    private static let digits = Array("0123456789".utf8)
    /// A time long ago, so that Last-Modified is a strong validator.
    private static let modified = 1_700_000_000
    private static let modifiedDate = "Tue, 14 Nov 2023 22:13:20 GMT"
    private static let earlier = "Tue, 14 Nov 2023 22:13:19 GMT"
    private static let later = "Tue, 14 Nov 2023 22:13:21 GMT"

    /// Runs `body` with a file of ten digits that was last modified at `modified`, and its entity tag.
    private func withFile(
        _ transport: Transport = .inProcess, _ body: (any TestedService, _ tag: String) throws -> Void
    ) throws {
        try withService(transport) { server in
            try server.publish(Self.digits, as: "f.bin")
            try server.data.setModified("f.bin", to: Self.modified)
            let response = try server.exchange(Request("HEAD", "/files/f.bin"))
            #expect(response.value("Last-Modified") == Self.modifiedDate)
            let tag = try #require(response.value("ETag"))
            #expect(tag.hasPrefix("\"") && tag.hasSuffix("\""), "a strong entity tag")
            try body(server, tag)
        }
    }

    private func get(
        _ server: any TestedService, _ fields: [(String, String)]
    ) throws -> ConformanceKit.Response { try server.download("f.bin", fields) }

    @Test("RNG-12 RNG-16: If-Range matches only the identical strong entity tag", arguments: Transport.allCases)
    func ifRangeTag(transport: Transport) throws {
        try withFile(transport) { server, tag in
            let range = ("Range", "bytes=2-4")
            let matching = try get(server, [range, ("If-Range", tag)])
            #expect(matching.status == 206)
            #expect(matching.text == "234")
            for other in [
                "W/" + tag, "\"other\"", String(tag.dropLast(2)) + "\"", tag + ", " + tag, "*", "", tag + "x",
            ] {
                let response = try get(server, [range, ("If-Range", other)])
                #expect(response.status == 200, "\(other)")
                #expect(response.text == "0123456789", "\(other)")
            }
            // If If-Range does not match, the complete file is sent even if the ranges cannot be satisfied.
            let beyond = ("Range", "bytes=10-")
            #expect(try get(server, [beyond, ("If-Range", "\"other\"")]).status == 200)
            #expect(try get(server, [beyond, ("If-Range", tag)]).status == 416)
        }
    }

    @Test("RNG-13: If-Range matches exactly the date of a strong Last-Modified")
    func ifRangeDate() throws {
        try withFile { server, _ in
            let range = ("Range", "bytes=2-4")
            let exact = try get(server, [range, ("If-Range", Self.modifiedDate)])
            #expect(exact.status == 206)
            for date in [Self.later, Self.earlier, "Fri, 31 Dec 2099 23:59:59 GMT", "yesterday"] {
                let response = try get(server, [range, ("If-Range", date)])
                #expect(response.text == "0123456789", "\(date)")
            }
        }
    }

    @Test("RNG-13: if a modification time is in the future, Last-Modified is not later than Date and not strong")
    func future() throws {
        try withService { server in
            try server.publish(Self.digits, as: "f.bin")
            try server.data.setModified("f.bin", to: 4_000_000_000)
            let response = try get(server, [])
            let modified = try #require(response.value("Last-Modified"))
            let date = try #require(response.value("Date"))
            let now = HTTPDate(secondsSinceEpoch: 1_700_000_000)
            let parsed = try #require(HTTPDate(parsing: modified, relativeTo: now))
            let sent = try #require(HTTPDate(parsing: date, relativeTo: now))
            #expect(parsed <= sent)
            let claimed = HTTPDate(secondsSinceEpoch: 4_000_000_000).serialized
            for value in [modified, claimed] {
                #expect(try get(server, [("Range", "bytes=2-4"), ("If-Range", value)]).status == 200)
            }
        }
    }

    @Test("RNG-14: If-Range without Range is ignored")
    func ifRangeAlone() throws {
        try withFile { server, tag in
            for value in [tag, "\"other\"", Self.modifiedDate, Self.later] {
                let response = try get(server, [("If-Range", value)])
                #expect(response.status == 200)
                #expect(response.text == "0123456789")
            }
        }
    }

    @Test(
        "RNG-15 RNG-16 RNG-24: conditions are evaluated in the order and with the comparison of RFC 9110",
        arguments: Transport.allCases)
    func order(transport: Transport) throws {
        try withFile(transport) { server, tag in
            let range = ("Range", "bytes=2-4")
            let weak = "W/" + tag
            let cases: [(fields: [(String, String)], status: Int)] = [
                // If-Match uses strong comparison.
                ([("If-Match", tag)], 200), ([("If-Match", "*")], 200), ([("If-Match", "\"a\", \(tag)")], 200),
                ([("If-Match", "\"a\""), ("If-Match", tag)], 200),
                ([("If-Match", weak)], 412), ([("If-Match", "\"a\"")], 412), ([("If-Match", "junk")], 412),
                // If-Unmodified-Since is evaluated only without If-Match.
                ([("If-Unmodified-Since", Self.modifiedDate)], 200), ([("If-Unmodified-Since", Self.later)], 200),
                ([("If-Unmodified-Since", Self.earlier)], 412), ([("If-Unmodified-Since", "junk")], 200),
                ([("If-Match", tag), ("If-Unmodified-Since", Self.earlier)], 200),
                ([("If-Match", "\"a\""), ("If-Unmodified-Since", Self.later)], 412),
                // If-None-Match uses weak comparison.
                ([("If-None-Match", tag)], 304), ([("If-None-Match", weak)], 304), ([("If-None-Match", "*")], 304),
                ([("If-None-Match", "\"a\", \(weak)")], 304), ([("If-None-Match", "\"a\"")], 200),
                // If-Modified-Since is evaluated only without If-None-Match.
                ([("If-Modified-Since", Self.modifiedDate)], 304), ([("If-Modified-Since", Self.later)], 304),
                ([("If-Modified-Since", Self.earlier)], 200), ([("If-Modified-Since", "junk")], 200),
                ([("If-None-Match", "\"a\""), ("If-Modified-Since", Self.later)], 200),
                ([("If-None-Match", tag), ("If-Modified-Since", Self.earlier)], 304),
                // If-Match and If-Unmodified-Since are evaluated before If-None-Match and If-Modified-Since, and all of
                // them before Range.
                ([("If-Match", "\"a\""), ("If-None-Match", tag)], 412),
                ([("If-Match", tag), ("If-None-Match", tag)], 304),
                ([("If-Match", "\"a\""), range], 412), ([("If-None-Match", tag), range], 304),
                ([("If-Unmodified-Since", Self.earlier), range], 412),
                ([("If-Modified-Since", Self.later), range], 304),
                ([("If-Match", tag), range], 206), ([("If-None-Match", "\"a\""), range, ("If-Range", tag)], 206),
                ([("If-None-Match", tag), range, ("If-Range", "\"a\"")], 304),
                ([("If-Match", "\"a\""), ("Range", "bytes=10-")], 412),
                ([("If-Match", tag), ("Range", "bytes=10-")], 416),
                ([("If-None-Match", tag), ("Range", "bytes=10-")], 304),
            ]
            for (fields, status) in cases {
                let response = try get(server, fields)
                #expect(response.status == status, "\(fields)")
                switch response.status {
                case 304:
                    #expect(response.value("ETag") == tag, "\(fields)")
                    #expect(response.value("Date") != nil, "\(fields)")
                    #expect(["10", nil].contains(response.value("Content-Length")), "\(fields)")
                    #expect(!response.fields.contains("Content-Range"), "\(fields)")
                case 412: #expect(response.problem?.code == "precondition-failed", "\(fields)")
                case 206: #expect(response.text == "234", "\(fields)")
                case 200: #expect(response.text == "0123456789", "\(fields)")
                default: break
                }
                if response.status >= 300 { #expect(response.content.firstRange(of: Self.digits) == nil, "\(fields)") }
            }
            // The conditions of HEAD are evaluated like those of GET; Range is ignored.
            for (fields, status) in cases where ![206, 416].contains(status) {
                let response = try server.exchange(Request("HEAD", "/files/f.bin", fields))
                #expect(response.status == status, "HEAD \(fields)")
            }
        }
    }

    @Test("RNG-15: conditions are ignored if there is no file")
    func missing() throws {
        try withService { server in
            for field in [("If-Match", "*"), ("If-None-Match", "*"), ("If-Match", "\"a\"")] {
                let response = try server.download("none.bin", [field, ("Range", "bytes=0-")])
                #expect(response.status == 404, "\(field)")
            }
        }
    }
}
