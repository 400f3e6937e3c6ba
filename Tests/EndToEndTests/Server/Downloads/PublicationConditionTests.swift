import ConformanceKit
import Testing

/// Conditions are checked at the creation of an upload, and again, in one step, when its file is published.
@Suite("Conditions at publication", .blocking)
struct PublicationConditionTests {
    @Test("A plain PUT fails with 412 if the file changes between the head and the end of the request")
    func plain() throws {
        let content = Payload.bytes(100_000)
        try withServer { server in
            try server.publish([1], as: "old.bin")
            let tag = try #require(try server.download("old.bin").value("ETag"))
            for (name, condition) in [("new.bin", ("If-None-Match", "*")), ("old.bin", ("If-Match", tag))] {
                let connection = try server.connect()
                let fields = [condition, ("Expect", "100-continue")]
                try connection.send(Request("PUT", "/files/" + name, fields, .declared(100_000)))
                // The server sends 100 after the conditions of the head have been checked.
                #expect(try connection.requireInterim().status == 100)
                try connection.send(content[..<50_000])
                try server.publish([2, 2], as: name)
                try connection.send(content[50_000...])
                let response = try connection.readResponse()
                #expect(response.status == 412, "\(name)")
                #expect(response.problem?.code == "precondition-failed")
                #expect(server.published(name) == [2, 2])
            }
        }
    }

    @Test("An append that completes an upload with a false condition gets 412 and ?1, and so does a repeated append")
    func resumable() throws {
        try withServer { server in
            try server.publish([1], as: "old.bin")
            let tag = try #require(try server.download("old.bin").value("ETag"))
            for (name, condition) in [("new.bin", ("If-None-Match", "*")), ("old.bin", ("If-Match", tag))] {
                var creation = Request.creation(
                    .v8, "PUT", "/files/" + name, complete: false, length: 6, .bytes([5, 6, 7]))
                creation.fields.append(condition)
                let location = try #require(try server.exchange(creation).location)
                try server.publish([2, 2], as: name)
                // The condition of the upload survives a restart.
                try server.restart()
                let response = try server.exchange(.append(.v8, location, at: 3, complete: true, .bytes([8, 9, 10])))
                #expect(response.status == 412, "\(name)")
                #expect(response.complete == true)
                #expect(server.published(name) == [2, 2])
                let state = try server.exchange(.retrieval(.v8, location))
                #expect(state.complete == true)
                let again = try server.exchange(.append(.v8, location, at: 6, complete: true, .bytes([])))
                #expect(again.status == 412)
                #expect(again.complete == true)
            }
        }
    }

    /// Sends 12 requests, waits until the server has checked the head of each, completes all of them at the same time,
    /// and returns the statuses of the responses.
    private func race(_ server: ServerProcess, _ name: String, _ condition: (String, String)) throws -> [Int] {
        let connections = try (0..<12).map { _ in try server.connect() }
        for connection in connections {
            let fields = [condition, ("Expect", "100-continue")]
            try connection.send(Request("PUT", "/files/" + name, fields, .declared(1000)))
            #expect(try connection.requireInterim().status == 100)
        }
        for (number, connection) in connections.enumerated() {
            try connection.send(Payload.bytes(999, seed: UInt64(number)))
        }
        for connection in connections { try connection.send([0xFF]) }
        return try connections.map { try $0.readResponse().status }
    }

    @Test("Of many clients that create the same file at the same time under If-None-Match: *, one succeeds")
    func creators() throws {
        try withServer { server in
            for round in 0..<5 {
                let name = "f\(round).bin"
                let statuses = try race(server, name, ("If-None-Match", "*"))
                #expect(statuses.filter { $0 == 201 }.count == 1, "\(statuses)")
                #expect(statuses.filter { $0 == 412 }.count == 11, "\(statuses)")
                let winner = try #require(statuses.firstIndex(of: 201))
                #expect(server.published(name) == Payload.bytes(999, seed: UInt64(winner)) + [0xFF])
            }
        }
    }

    @Test("Of many clients that replace the same version under If-Match, one succeeds: no update is lost")
    func replacers() throws {
        try withServer { server in
            try server.publish([1], as: "f.bin")
            for _ in 0..<5 {
                let tag = try #require(try server.download("f.bin").value("ETag"))
                let statuses = try race(server, "f.bin", ("If-Match", tag))
                #expect(statuses.filter { $0 == 204 }.count == 1, "\(statuses)")
                #expect(statuses.filter { $0 == 412 }.count == 11, "\(statuses)")
                let winner = try #require(statuses.firstIndex(of: 204))
                #expect(server.published("f.bin") == Payload.bytes(999, seed: UInt64(winner)) + [0xFF])
            }
        }
    }
}
