import ConformanceKit
import HTTPTestSupport
import Testing

/// Clients that continue to send, disconnect or send nothing; the memory and the stop of the server.
@Suite("Robustness", .blocking)
struct RobustnessTests {
    @Test(
        "H11-14 H11-15: a refusal reaches a client that continues to send; the content is never served as a request",
        arguments: ["409", "413", "404", "415", "405"])
    func refusedWhileSending(status: String) throws {
        try withSocket(settings: .with { $0.server.limits.maxSize = 100_000_000 }) { server in
            #expect(try server.exchange(Request("PUT", "/files/victim", [], .bytes([1]))).status == 201)
            let location = try server.begin(.v8, "/files/f", [1])
            let size: Int64 = 32 << 20
            let request: Request =
                switch status {
                case "409": .append(.v8, location, at: 5, complete: true, .declared(size))
                case "413": .creation(.v8, complete: false, length: 200_000_000, .declared(size))
                case "404": .append(.v8, "/uploads/none", at: 0, complete: true, .declared(size))
                case "415":
                    Request("PATCH", location, [("Upload-Offset", "1"), ("Upload-Complete", "?1")], .declared(size))
                default: Request("POST", location, [], .declared(size))
                }
            let connection = try server.connect()
            try connection.send(request)
            let attack = Array("DELETE /files/victim HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".utf8)
            let block = (0..<4096).flatMap { _ in attack }
            var sent = 0
            while sent < Int(size) {
                let count = connection.sendUntilRefused(block.prefix(Int(size) - sent), within: .seconds(5))
                sent += count
                if count == 0 { break }
            }
            let response = try connection.readResponse()
            #expect(response.status == Int(status))
            #expect(response.value("Connection") == "close")
            #expect(response.problem?.status == Int(status))
            connection.endOutput()
            connection.expectClosed()
            #expect(server.data.published("victim") == [1])
        }
    }

    @Test("H11-15: a refusal in place of 100 also reaches a client that sends without waiting for 100")
    func refusedWhileSendingUnasked() throws {
        try withSocket { server in
            let size = 8 << 20
            let connection = try server.connect()
            try connection.send(
                Request.append(.v8, "/uploads/none", at: 0, complete: true, .declared(Int64(size)))
                    .with("Expect", "100-continue"))
            let block = [UInt8](repeating: 1, count: 1 << 20)
            var sent = 0
            while sent < size {
                let count = connection.sendUntilRefused(block.prefix(size - sent), within: .seconds(60))
                sent += count
                if count == 0 { break }
            }
            #expect(sent == size, "the connection was reset")
            #expect(try connection.readResponse().status == 404)
            connection.endOutput()
            connection.expectClosed()
        }
    }

    @Test("H11-18: an expectation with trailing white space is met")
    func expectationWithSpace() throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(Request("PUT", "/files/f", [("Expect", "100-continue ")], .declared(5)))
            #expect(try connection.requireInterim().status == 100)
            try connection.send("hello")
            #expect(try connection.readResponse(to: "PUT").status == 201)
        }
    }

    @Test("H11-14: content after a refusal in place of 100 is never executed as a request")
    func contentAfterRefusal() throws {
        try withSocket { server in
            #expect(try server.exchange(Request("PUT", "/files/victim", [], .bytes([1]))).status == 201)
            let attack = Array("DELETE /files/victim HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            let connection = try server.connect()
            let request = Request.append(.v8, "/uploads/none", at: 0, complete: true, .declared(Int64(attack.count)))
            try connection.send(request.with("Expect", "100-continue"))
            #expect(try connection.readResponse().status == 404)
            _ = connection.sendUntilRefused(attack)
            connection.endOutput()
            _ = try connection.awaitClosing()
            #expect(server.data.published("victim") == [1])
        }
    }

    @Test("H11-16: a connection with an upload is kept open for other requests")
    func keepAlive() throws {
        try withSocket { server in
            let connection = try server.connect()
            for number in 1...20 {
                let content = Payload.bytes(1000 * number)
                let response = try connection.exchange(
                    .creation(.v8, "PUT", "/files/f", complete: true, .bytes(content)))
                #expect(response.isSuccessful)
                #expect(try connection.exchange(.get("/files/f")).content == content)
                #expect(try connection.exchange(Request("PUT", "/files/g", [], .chunks([content]))).isSuccessful)
            }
        }
    }

    @Test("H11-16: Connection: close is obeyed", arguments: ["HTTP/1.0", "HTTP/1.1"])
    func connectionClose(version: String) throws {
        try withSocket { server in
            let connection = try server.connect()
            var request = Request.creation(.v8, complete: true, .bytes([1]))
            request.version = version
            if version == "HTTP/1.1" { request.fields.append(("Connection", "close")) }
            #expect(try connection.exchange(request).status == 201)
            connection.expectClosed()
        }
    }
}
