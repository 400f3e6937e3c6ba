import ConformanceKit
import HTTPTestSupport
import Testing

/// Requests with several ranges (RFC 9110 sections 14.6 and 15.3.7.2).
@Suite("Multiple ranges", .blocking)
struct MultipleRangeTests {
    private static let digits = Array("0123456789".utf8)

    @Test(
        "RNG-08 RNG-10 RNG-26: each part has its own Content-Range, in the order of the request; the length is exact",
        arguments: Transport.allCases)
    func parts(transport: Transport) throws {
        let cases: [(range: String, parts: [(String, String)])] = [
            ("bytes=0-0,4-5", [("bytes 0-0/10", "0"), ("bytes 4-5/10", "45")]),
            ("bytes=6-7,0-1,99-", [("bytes 6-7/10", "67"), ("bytes 0-1/10", "01")]),
            ("bytes=99-,6-7,-0,0-1", [("bytes 6-7/10", "67"), ("bytes 0-1/10", "01")]),
            ("bytes=0-1, -2", [("bytes 0-1/10", "01"), ("bytes 8-9/10", "89")]),
            ("bytes=-2 , 0-1", [("bytes 8-9/10", "89"), ("bytes 0-1/10", "01")]),
            ("bytes=0-0,2-2,4-4,6-6", (0..<4).map { ("bytes \($0 * 2)-\($0 * 2)/10", "\($0 * 2)") }),
            ("bytes=0-0,,5-", [("bytes 0-0/10", "0"), ("bytes 5-9/10", "56789")]),
        ]
        try withService(transport) { server in
            try server.publish(Self.digits, as: "f.txt")
            for (range, expected) in cases {
                // The response is read by its Content-Length, so the next response shows that the length was exact.
                let response = try server.exchange(Request("GET", "/files/f.txt", [("Range", range)]))
                #expect(response.status == 206, "\(range)")
                #expect(!response.fields.contains("Content-Range"), "\(range)")
                #expect(response.value("Content-Length") == "\(response.content.count)", "\(range)")
                let parts = try #require(response.parts, "\(range): \(response)")
                #expect(parts.compactMap { $0.fields["Content-Range"] } == expected.map(\.0), "\(range)")
                #expect(parts.map { String(decoding: $0.content, as: UTF8.self) } == expected.map(\.1), "\(range)")
                for part in parts { #expect(part.fields["Content-Type"] == "text/plain; charset=utf-8") }
            }
            #expect(try server.exchange(.get("/files/f.txt")).text == "0123456789")
        }
    }

    @Test("RNG-25: each response has a new boundary, and content that looks like a boundary has no effect")
    func boundary() throws {
        try withService { server in
            let first = Array("--x\r\nContent-Range: bytes 0-1/2\r\n\r\n--x--\r\n".utf8)
            try server.publish(first, as: "f.bin")
            let range = [("Range", "bytes=0-9,20-")]
            let response = try server.download("f.bin", range)
            // The file now contains the boundary of the previous response.
            let boundary = try #require(response.value("Content-Type")?.split(separator: "=").last)
            let second = Array("\r\n--\(boundary)\r\n\r\n--\(boundary)--\r\n--\(boundary)\r\n".utf8)
            try server.publish(second, as: "f.bin")
            let again = try server.download("f.bin", range)
            let new = try #require(again.value("Content-Type")?.split(separator: "=").last)
            #expect(new != boundary)
            #expect(new.utf8.count >= 22 && new.utf8.count <= 70)
            #expect(second.firstRange(of: new.utf8) == nil)
            #expect(again.parts?.map(\.content) == [Array(second[..<10]), Array(second[20...])])
        }
    }

    @Test("RNG-11: a response to many or overlapping ranges is never much larger than the file")
    func manyRanges() throws {
        let size = 200_000
        let content = Payload.bytes(size)
        let sets = [
            "bytes=" + Array(repeating: "0-", count: 200).joined(separator: ","),
            "bytes=" + (0..<1000).map { "\($0 * 100)-\($0 * 100)" }.joined(separator: ","),
            "bytes=" + (0..<1000).reversed().map { "\($0)-" }.joined(separator: ","),
            "bytes=" + (1...500).map { "-\($0)" }.joined(separator: ","),
            "bytes=0-,0-", "bytes=0-99999,50000-149999,100000-", "bytes=0-,-200000,1-",
            "bytes=" + Array(repeating: "0-0", count: 5000).joined(separator: ","),
        ]
        try withService { server in
            try server.publish(content, as: "f.bin")
            for set in sets {
                let response = try server.exchange(Request("GET", "/files/f.bin", [("Range", set)]))
                let name = "\(set.prefix(40))…"
                #expect(response.content.count <= size + 4096, "\(name)")
                switch response.status {
                case 200: #expect(response.content == content, "\(name)")
                case 206:
                    if let parts = response.parts {
                        #expect(parts.count <= 16, "\(name)")
                    } else {
                        #expect(response.value("Content-Range") == "bytes 0-199999/200000", "\(name)")
                        #expect(response.content == content, "\(name)")
                    }
                case 416: break
                default: Issue.record("\(name): \(response)")
                }
            }
        }
    }

    @Test("RNG-08 RNG-26: large parts arrive completely", arguments: Transport.allCases)
    func largeParts(transport: Transport) throws {
        let content = Payload.bytes(6 << 20)
        try withService(transport) { server in
            try server.publish(content, as: "f.bin")
            let ranges = [1_000_000..<3_000_000, 5..<6, 4_000_001..<content.count, 100..<900_000]
            let set = ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(separator: ",")
            let response = try server.download("f.bin", [("Range", "bytes=" + set)])
            let parts = try #require(response.parts)
            #expect(parts.map(\.content) == ranges.map { Array(content[$0]) })
        }
    }
}
