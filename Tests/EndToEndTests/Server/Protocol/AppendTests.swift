import ConformanceKit
import Testing

/// Interrupted appends. The cases of the harness do not require that the server keeps every byte that arrived.
@Suite("Append", .serialized, .blocking)
struct AppendTests {
    @Test(
        "APP-13 APP-14: an interrupted append keeps the bytes that arrived, and does not complete the upload",
        arguments: [true, false])
    func interrupted(byReset: Bool) throws {
        try withServer { server in
            let content = Payload.bytes(100_000)
            let location = try server.begin(.v8, "/files/f", Array(content[..<1000]))
            let connection = try server.connect()
            try connection.open(.append(.v8, location, at: 1000, complete: true, .declared(99_000)))
            try connection.send(content[1000..<61_000])
            try connection.awaitAcknowledgment()
            byReset ? connection.reset() : connection.close()
            try server.awaitInterruption("PATCH")
            let state = try server.retrieve(location)
            #expect(state.offset == 61_000)
            #expect(state.complete == false)
            #expect(server.published("f") == nil)
            let completion = try server.exchange(
                .append(.v8, location, at: 61_000, complete: true, .bytes(Array(content[61_000...]))))
            #expect(completion.status == 201)
            #expect(server.published("f")?.sha256 == content.sha256)
        }
    }
}
