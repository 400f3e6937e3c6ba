import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Strong validators of files that are replaced (RFC 9110 section 8.8).
@Suite("Replacement of files", .blocking)
struct ReplacementTests {
    @Test("RNG-19: a file with the same size and time, but other bytes, has another entity tag")
    func entityTags() throws {
        try withServer { server in
            var tags: [String] = []
            func expectNewTag(_ content: [UInt8]) throws {
                let response = try server.download("f.bin")
                #expect(response.content == content)
                let tag = try #require(response.value("ETag"))
                #expect(!tags.contains(tag))
                tags.append(tag)
                let head = try server.exchange(Request("HEAD", "/files/f.bin"))
                #expect(head.value("ETag") == tag)
            }
            let first = Payload.bytes(1000, seed: 1)
            try server.publish(first, as: "f.bin")
            try server.setModified("f.bin", to: 1_700_000_000)
            try expectNewTag(first)
            // The server replaces the file, once with the same bytes.
            for seed: UInt64 in [2, 3, 3] {
                let content = Payload.bytes(1000, seed: seed)
                try server.publish(content, as: "f.bin")
                try server.setModified("f.bin", to: 1_700_000_000)
                try expectNewTag(content)
            }
            if server.shared != nil { return }
            // A user replaces the file by renaming another file that has the same modification time.
            let fourth = Payload.bytes(1000, seed: 4)
            try server.place(fourth, as: "other.bin")
            try server.setModified("other.bin", to: 1_700_000_000)
            #expect(rename(server.path(of: "other.bin"), server.path(of: "f.bin")) == 0)
            try expectNewTag(fourth)
            // A user writes into the file, and restores its modification time.
            let fifth = Payload.bytes(1000, seed: 5)
            try server.data.writeSparse(fifth, at: 0, of: "f.bin")
            try server.setModified("f.bin", to: 1_700_000_000)
            try expectNewTag(fifth)
        }
    }

    @Test("RNG-19: the responses to PUT and GET have the same entity tag, and the tag survives a restart")
    func tagOfPublication() throws {
        try withServer { server in
            let created = try server.publish(Payload.bytes(10), as: "f.bin")
            let tag = try #require(created.value("ETag"))
            #expect(try server.download("f.bin").value("ETag") == tag)
            #expect(try server.download("f.bin").value("Last-Modified") == created.value("Last-Modified"))
            let replaced = try server.publish(Payload.bytes(10), as: "f.bin")
            let second = try #require(replaced.value("ETag"))
            #expect(second != tag)
            #expect(try server.download("f.bin").value("ETag") == second)
            try server.restart()
            #expect(try server.download("f.bin").value("ETag") == second)
        }
    }

    // More bytes than fit into the socket buffers of server and client: a download is unfinished when the file changes.
    private static let old = Payload.bytes(9 << 20, seed: 1)
    private static let new = Payload.bytes(9 << 20, seed: 2)

    /// The way in which the file is replaced or removed while a client reads it slowly.
    enum Change: String, CaseIterable, Sendable {
        case put, deletion, rename
    }

    @Test(
        "RNG-20: a running download continues with the version with which it started",
        arguments: [nil, "bytes=0-", "bytes=10-19,1000-"],
        SharedStorage.isSelected ? [.put, .deletion] : Change.allCases)
    func whileDownloading(range: String?, change: Change) throws {
        let (old, new) = (Self.old, Self.new)
        try withServer { server in
            try server.place(old, as: "f.bin")
            try server.place(new, as: "new.bin")
            let connection = try server.connect(receiveBuffer: 128 << 10)
            try connection.send(Request("GET", "/files/f.bin", range.map { [("Range", $0)] } ?? []))
            _ = try connection.receiveMore(until: Deadline(in: .seconds(60)))
            switch change {
            case .put: try server.publish(new, as: "f.bin")
            case .deletion: #expect(try server.exchange(Request("DELETE", "/files/f.bin")).status == 204)
            case .rename: #expect(rename(server.path(of: "new.bin"), server.path(of: "f.bin")) == 0)
            }
            let response = try connection.readResponse()
            if let parts = response.parts {
                #expect(parts.map(\.content.count) == [10, old.count - 1000])
                #expect(areEqual(parts[0].content, Array(old[10..<20])))
                #expect(areEqual(parts[1].content, Array(old[1000...])))
            } else {
                #expect(areEqual(response.content, old))
            }
            let after = try server.download("f.bin")
            if change == .deletion {
                #expect(after.status == 404)
            } else {
                #expect(areEqual(after.content, new))
                #expect(after.value("ETag") != response.value("ETag"))
            }
        }
    }

    @Test("RNG-20: if a file is truncated during its download, the response ends early and has no other bytes")
    func shrinking() throws {
        // Only the idle timeout ends such a response.
        try withServer("--idle-timeout", "2") { server in
            try server.place(Self.old, as: "f.bin")
            let connection = try server.connect(receiveBuffer: 128 << 10)
            try connection.send(.get("/files/f.bin"))
            _ = try connection.receiveMore(until: Deadline(in: .seconds(60)))
            #expect(truncate(server.path(of: "f.bin"), 8 << 20) == 0)
            let deadline = Deadline(in: .seconds(60))
            while try connection.receiveMore(until: deadline) == nil {}
            let start = try #require(connection.received.firstRange(of: Array("\r\n\r\n".utf8))).upperBound
            let body = Array(connection.received[start...])
            #expect(body.count <= 8 << 20)
            #expect(areEqual(body, Array(Self.old[..<body.count])))
        }
    }

    @Test("RNG-12 RNG-20: a client that continues with If-Range never gets bytes of two versions")
    func continuing() throws {
        let old = Payload.bytes(3 << 20, seed: 1)
        let new = Payload.bytes(3 << 20, seed: 2)
        try withServer { server in
            try server.publish(old, as: "f.bin")
            let connection = try server.connect(receiveBuffer: 128 << 10)
            try connection.send(.get("/files/f.bin"))
            while connection.received.count < 100_000 {
                _ = try connection.receiveMore(until: Deadline(in: .seconds(60)))
            }
            connection.reset()
            let tag = try #require(try server.exchange(Request("HEAD", "/files/f.bin")).value("ETag"))
            let condition = [("Range", "bytes=100000-"), ("If-Range", tag)]
            let same = try server.download("f.bin", condition)
            #expect(same.status == 206)
            #expect(same.content == Array(old[100_000...]))
            try server.publish(new, as: "f.bin")
            let other = try server.download("f.bin", condition)
            #expect(other.status == 200)
            #expect(other.content == new)
        }
    }
}
