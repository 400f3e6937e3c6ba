import ConformanceKit
import FoundationEssentials
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// Field values can have any bytes from 0x80 on (obs-text, RFC 9110 section 5.5), and the server changes none of them.
@Suite("The gateway as a proxy: bytes of field values", .blocking)
struct GatewayFieldByteTests {
    /// Values with letters in ISO-8859-1, with UTF-8, and with bytes that are neither, without white space at the ends.
    private static func values(seed: UInt64, _ count: Int) -> [[UInt8]] {
        var generator = SeededGenerator(seed: seed)
        let fixed: [[UInt8]] = [
            [0x63, 0x61, 0x66, 0xE9], Array("café €".utf8), [0xFF], [0x80, 0xFE], [0xF4, 0x8F, 0xBE, 0x80],
            Array("a\tb".utf8), Array("\"q;\\\"\"".utf8), [],
        ]
        return fixed
            + (fixed.count..<count).map { _ in
                var value: [UInt8] = []
                for _ in 0..<Int.random(in: 1...40, using: &generator) {
                    switch Int.random(in: 0..<6, using: &generator) {
                    case 0: value += "ü\u{1F600}".utf8
                    case 1: value.append(UInt8.random(in: 0x80...0xFF, using: &generator))
                    case 2: value += [0xF4, 0x8F, 0xBF, UInt8.random(in: 0x80...0xBF, using: &generator)]
                    case 3: value += [0x09, 0x20, 0xE4]
                    default: value.append(UInt8.random(in: 0x21...0x7E, using: &generator))
                    }
                }
                return [0x22] + value + [0x22]
            }
    }

    private static func lines(_ values: [[UInt8]]) -> [UInt8] {
        values.enumerated().flatMap { Array("X-Value-\($0.offset): ".utf8) + $0.element + [0x0D, 0x0A] }
    }

    /// The values of the fields of ``lines(_:)`` in a head.
    private static func values(in head: [UInt8], _ count: Int) -> [[UInt8]?] {
        let lines = head.split(separator: 0x0A).map { $0.last == 0x0D ? $0.dropLast() : $0 }
        return (0..<count).map { number in
            let name = Array("x-value-\(number):".utf8)
            return lines.first { line in
                line.count >= name.count && zip(line, name).allSatisfy { $0 | 0x20 == $1 | 0x20 }
            }.map { line in
                var value = line.dropFirst(name.count)
                while let byte = value.first, byte == 0x20 || byte == 0x09 { value.removeFirst() }
                while let byte = value.last, byte == 0x20 || byte == 0x09 { value.removeLast() }
                return Array(value)
            }
        }
    }

    private static func head(_ connection: RawConnection) throws -> [UInt8] {
        let end = Array("\r\n\r\n".utf8)
        let deadline = Deadline(in: .seconds(30))
        while true {
            let received = connection.received
            if received.count >= 4,
                let start = (0...(received.count - 4)).first(where: { received[$0..<($0 + 4)].elementsEqual(end) })
            {
                return Array(received[..<start])
            }
            _ = try connection.receiveMore(until: deadline)
        }
    }

    @Test("values of requests and responses arrive byte for byte", arguments: [1, 2, 3, 4] as [UInt64])
    func forwarded(seed: UInt64) throws {
        let values = Self.values(seed: seed, 40)
        let origin = try ScriptedServer.origin { request, connection in
            try connection.discardContent()
            let interim = Array("HTTP/1.1 103 Early Hints\r\n".utf8) + Self.lines(values) + Array("\r\n".utf8)
            try connection.send(request.path == "/app/interim" ? interim : [])
            try connection.send(
                Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".utf8) + Self.lines(values) + Array("\r\nok".utf8))
        }
        try withGateway(to: origin) { server in
            for path in ["/app/final", "/app/interim"] {
                let connection = try server.connect()
                let head = "GET \(path) HTTP/1.1\r\nHost: localhost\r\n"
                try connection.send(Array(head.utf8) + Self.lines(values) + Array("\r\n".utf8))
                let response = try Self.head(connection)
                let arrived = Self.values(in: try #require(origin.requests.last).head, values.count)
                for number in values.indices {
                    #expect(arrived[number] == values[number], "the origin got another value \(number)")
                }
                let answered = Self.values(in: response, values.count)
                for number in values.indices {
                    #expect(answered[number] == values[number], "the client got another value \(number) of \(path)")
                }
            }
            #expect(origin.malformed == [])
        }
    }

    @Test("values that are stored with a resumable upload arrive byte for byte, even after a restart")
    func stored() throws {
        let values = Self.values(seed: 5, 30)
        let origin = try ScriptedServer.origin { _, connection in
            try connection.discardContent()
            try connection.send(
                Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".utf8) + Self.lines(values) + Array("\r\nok".utf8))
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            let head =
                "POST /app/x HTTP/1.1\r\nHost: localhost\r\nUpload-Draft-Interop-Version: 8\r\nUpload-Complete: ?0\r\n"
                + "Content-Length: 3\r\n"
            try connection.send(Array(head.utf8) + Self.lines(values) + Array("\r\nabc".utf8))
            connection.expectResponse(to: "POST")
            let location = try #require(try connection.readResponse().location)
            try server.restart()
            for isRepeated in [false, true] {
                let last = try server.connect()
                try last.send(.append(.v8, location, at: 3, complete: true, .bytes([])))
                let response = Self.values(in: try Self.head(last), values.count)
                for number in values.indices {
                    #expect(response[number] == values[number], "value \(number), repeated: \(isRepeated)")
                }
                if !isRepeated { try server.restart() }
            }
            let arrived = Self.values(in: try #require(origin.requests.last).head, values.count)
            for number in values.indices {
                #expect(arrived[number] == values[number], "the origin got another value \(number)")
            }
            #expect(origin.requests.count == 1 && origin.malformed == [])
        }
    }

    @Test("fields of files keep their bytes, and a name in ISO-8859-1 becomes the name that it means")
    func files() throws {
        try withServer(options: ["--log-format", "json"]) { server in
            let type = Array("text/plain; title=\"caf".utf8) + [0xE9] + Array("\"".utf8)
            let connection = try server.connect()
            let head = "POST /files/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Type: "
            let name = "\r\nContent-Disposition: attachment; filename=\"caf"
            try connection.send(
                Array(head.utf8) + type + Array(name.utf8) + [0xE9, 0x85] + Array(".txt\"\r\n\r\nok".utf8))
            connection.expectResponse(to: "POST")
            let created = try connection.readResponse()
            #expect(created.status == 201 && created.location?.hasSuffix("/files/caf%C3%A9.txt") == true, "\(created)")
            let reader = try server.connect()
            try reader.send(Request.get("/files/caf%C3%A9.txt"))
            let lines = try Self.head(reader).split(separator: 0x0A)
            let line = try #require(lines.first { $0.starts(with: Array("Content-Type:".utf8)) })
            #expect(Array(line.dropFirst(14).dropLast()) == type)
            // The log and listings are valid JSON.
            let listing = try server.exchange(Request("GET", "/files/", [("Accept", "application/json")]))
            #expect(throws: Never.self) { try JSONDecoder().decode(JSONAny.self, from: Data(listing.content)) }
            for line in server.log.split(separator: "\n") where line.hasPrefix("{") {
                #expect(throws: Never.self) { try JSONDecoder().decode(JSONAny.self, from: Data(line.utf8)) }
            }
        }
    }
}

/// Any JSON value.
private struct JSONAny: Decodable {
    init(from decoder: any Decoder) throws { _ = try decoder.singleValueContainer() }
}
