import ConformanceKit
import FoundationEssentials
import Glibc
import Testing

/// `onward check`, and `onward serve` with the same damage.
@Suite("Checking a data directory", .blocking)
struct CheckTests {
    private func check(_ root: String, _ options: String...) throws -> OnwardRun {
        try OnwardRun(["check", "--root", root] + options)
    }

    /// Runs `body` with the directory of a stopped server that has one file and one unfinished upload.
    private func withDirectory(_ body: (ServerProcess, _ location: String) throws -> Void) throws {
        try withServer { server in
            #expect(try server.exchange(Request("PUT", "/files/a", [], .bytes(Array("abc".utf8)))).status == 201)
            let location = try server.begin(.v8, "/files/b", BytePool.repeated(0..<5000))
            #expect(try server.stop() == .exited(0))
            try body(server, location)
        }
    }

    @Test("check exits with 0 for no damage, 75 for a directory in use, 74 for a missing one, 64 for a wrong option")
    func statuses() throws {
        try withDirectory { server, _ in
            let run = try check(server.root)
            #expect(run.ending == .exited(0))
            #expect(run.output == "checked uploads: 1, unfinished: 1; checked files: 1; no damage\n", "\(run.output)")
            try server.restart()
            try check(server.root).expect(75, "a server uses")
            #expect(try server.stop() == .exited(0))
            try check(server.root + "/files").expect(74, "not a data directory of onward")
            try check(server.root + "/nowhere").expect(74, "nowhere")
            try check(server.root, "--everything").expect(64, "--everything")
        }
    }

    @Test("SEC-17 OFF-15: check reports each damage and exits with 74; serve deactivates the damaged uploads")
    func damage() throws {
        try withDirectory { server, location in
            let blob = server.root + "/uploads/" + (try #require(server.unfinished.keys.first))
            #expect(truncate(blob, 4999) == 0)
            let run = try check(server.root)
            #expect(run.ending == .exited(74))
            #expect(run.output.contains("damage: bytes-short: uploads/"), "\(run.output)")
            #expect(run.output.contains("5000 bytes of upload:"), "\(run.output)")
            #expect(!run.output.contains(location.split(separator: "/").last ?? "-"), "the URL is a secret")
            let json = try check(server.root, "--json", "--digests")
            #expect(json.ending == .exited(74))
            let lines = json.output.split(separator: "\n")
            #expect(lines.count == 3 && lines.allSatisfy { $0.hasPrefix("{\"event\":\"") && $0.hasSuffix("}") })
            #expect(json.output.contains("\"severity\":\"damage\",\"code\":\"bytes-short\""), "\(json.output)")
            // printf abc | sha256sum
            let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            #expect(json.output.contains("\"sha-256\":\"\(digest)\",\"path\":\"files/a\""), "\(json.output)")
            #expect(json.output.contains("\"damages\":1"), "\(json.output)")
            try server.restart()
            #expect(try server.exchange(.retrieval(.v8, location)).status == 410)
            #expect(try server.stop() == .exited(0))
            #expect(try check(server.root).ending == .exited(0))
        }
    }

    enum Harm: CaseIterable {
        case page, header, newer, foreign
    }

    @Test("SEC-17: check and serve refuse a damaged, foreign or newer catalog with a reason, and do not change it")
    func refusals() throws {
        for harm in Harm.allCases {
            try withDirectory { server, _ in
                let path = server.root + "/onward.sqlite"
                let file = try #require(fopen(path, "r+e"))
                switch harm {
                case .page:
                    // The second page belongs to the first table.
                    fseek(file, 4096, SEEK_SET)
                    fwrite([UInt8](repeating: 0xA5, count: 4096), 1, 4096, file)
                case .header: fwrite([UInt8](repeating: 0x41, count: 100), 1, 100, file)
                // The user version and the application id (sqlite.org/fileformat.html, section 1.3).
                case .newer:
                    fseek(file, 60, SEEK_SET)
                    fwrite([UInt8]([0, 0, 0, 99]), 1, 4, file)
                case .foreign:
                    fseek(file, 68, SEEK_SET)
                    fwrite([UInt8]([1, 2, 3, 4]), 1, 4, file)
                }
                fclose(file)
                let before = FileManager.default.contents(atPath: path)
                let words =
                    switch harm {
                    case .page: "malformed"
                    case .header: "not an SQLite database"
                    case .newer: "schema 99"
                    case .foreign: "another application"
                    }
                let run = try check(server.root)
                #expect(run.ending == .exited(74), "\(harm): \(run.output)")
                #expect(run.output.contains(words), "\(harm): \(run.output)")
                #expect(FileManager.default.contents(atPath: path) == before)
                let serve = try OnwardRun(["serve", "--listen", "127.0.0.1:0", "--root", server.root])
                serve.expect(74, words)
                if harm != .page { #expect(FileManager.default.contents(atPath: path) == before, "\(harm)") }
                #expect(server.unfinished.count == 1)
                #expect(server.published("a") == Array("abc".utf8))
            }
        }
    }
}
