import ConformanceKit
import TestSupport
import Testing

/// Tests that the server sends and stores data without waiting for more data. The tests use the data directory and slow
/// sockets.
@Suite("Promptness", .serialized, .blocking)
struct PromptnessTests {
    @Test("A 104 is sent without a delay on a connection that has transferred a large file")
    func interimAfterDownload() throws {
        try withServer { server in
            let content = Payload.bytes((2 << 20) + 12_345)
            #expect(try server.exchange(Request("PUT", "/files/large", [], .bytes(content))).status == 201)
            let connection = try server.connect()
            var durations: [Duration] = []
            for number in 0..<7 {
                #expect(try connection.exchange(.get("/files/large")).content.count == content.count)
                let begin = ContinuousClock.now
                try connection.send(
                    Request.creation(.v8, "PUT", "/files/small\(number)", complete: true, .declared(1)))
                #expect(try connection.requireInterim().status == 104)
                durations.append(ContinuousClock.now - begin)
                try connection.send("x")
                #expect(try connection.readResponse(to: "PUT").status == 201)
            }
            // A busy machine may delay most of them, but not all.
            #expect(durations.contains { $0 < .milliseconds(100) }, "\(durations)")
        }
    }

    @Test("Content in one-byte chunks is stored as soon as it has arrived")
    func smallChunks() throws {
        try withServer { server in
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .openChunks))
            #expect(try connection.requireInterim().location != nil)
            try connection.send("1\r\na\r\n1\r\nb\r\n1\r")
            try connection.awaitAcknowledgment()
            #expect(eventually(within: .seconds(30)) { server.unfinished.values.contains(2) })
        }
    }
}
