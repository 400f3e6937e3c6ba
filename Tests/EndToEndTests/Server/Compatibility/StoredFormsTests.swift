import ConformanceKit
import Foundation
import TestSupport
import Testing

/// The data that version 0.1.0 stored is still usable. `version-0.1.0.tar.gz` contains a data directory (a published
/// file, an upload with a stored response, an upload with 12 of 23 bytes, and an upload that a killed `put` began), the
/// state files of an interrupted `put` and `get`, and the local files of these two transfers.
@Suite("Data stored by version 0.1.0", .blocking)
struct StoredFormsTests {
    private static let archive = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "version-0.1.0.tar.gz"
    ).path
    private static let authority = "127.0.0.77:8477"
    private static let place = "/tmp/onward-0.1.0"

    /// Unpacks the archive, replaces the server's data directory with the archived one, and starts the server with it.
    private func prepare(_ server: ServerProcess) throws -> CommandHome {
        let home = try CommandHome()
        let tar = try ChildProcess("/usr/bin/tar", ["-xzf", Self.archive, "-C", home.path])
        #expect(try tar.awaitEnding() == .exited(0), "\(tar.errorOutput)")
        _ = try server.stop()
        try FileManager.default.removeItem(atPath: server.root)
        try FileManager.default.copyItem(atPath: home.path + "/data", toPath: server.root)
        try server.restart()
        for name in home.stateNames {
            let path = home.states + "/" + name
            try moved(Data(contentsOf: URL(filePath: path)), home, server).write(to: URL(filePath: path))
        }
        return home
    }

    /// A state file with the paths and the server address of this test.
    private func moved(_ state: Data, _ home: CommandHome, _ server: ServerProcess) throws -> Data {
        func moved(_ text: String) -> String {
            text.replacing(Self.place, with: home.path).replacing(Self.authority, with: server.authority)
        }
        var object = try #require(try JSONSerialization.jsonObject(with: state) as? [String: Any])
        var identity = try #require(object["identity"] as? [String: String])
        for (key, value) in identity { identity[key] = moved(value) }
        object["identity"] = identity
        let data = try #require((object["resumeData"] as? String).flatMap { Data(base64Encoded: $0) })
        let text = moved(String(decoding: data.dropFirst(6), as: UTF8.self))
        object["resumeData"] = (data.prefix(6) + Data(text.utf8)).base64EncodedString()
        return try JSONSerialization.data(withJSONObject: object)
    }

    @Test("A server serves the files, the unfinished uploads and the stored responses of the archived data directory")
    func dataDirectory() throws {
        try withServer { server in
            let home = try prepare(server)
            let published = try Data(contentsOf: URL(filePath: home.path + "/work/published.bin"))
            #expect(try Array(published) == server.exchange(.get("/files/published.bin")).content)

            let unfinished = try String(contentsOfFile: home.path + "/unfinished", encoding: .utf8)
                .trimmingCharacters(in: .newlines)
            let state = try server.exchange(Request("HEAD", unfinished, [("Upload-Draft-Interop-Version", "6")]))
            #expect(
                state.status == 204 && state.fields["Upload-Offset"] == "12" && state.fields["Upload-Complete"] == "?0")
            let completed = try server.exchange(
                Request(
                    "PATCH", unfinished,
                    [
                        ("Upload-Draft-Interop-Version", "6"), ("Upload-Offset", "12"), ("Upload-Complete", "?1"),
                        ("Content-Type", "application/partial-upload"),
                    ], .bytes(Array("second part".utf8))))
            #expect(completed.status == 201 && completed.fields["Repr-Digest"] != nil)
            let file = try server.exchange(.get("/files/dir/parts.txt"))
            #expect(file.text == "first part, second part" && file.fields["Content-Type"] == "text/plain")

            let answered = try server.exchange(
                Request("HEAD", "/uploads/1bc2e2931c3118c83b9507f3a37d4923", [("Upload-Draft-Interop-Version", "6")]))
            #expect(answered.fields["Upload-Complete"] == "?1" && answered.fields["Upload-Offset"] == "5")
            #expect(try server.exchange(.get("/files/replayed.txt")).text == "hello")
        }
    }

    @Test("The command lists, resumes and cancels interrupted transfers")
    func stateFiles() throws {
        try withServer { server in
            let home = try prepare(server)
            let states = try home.run("status", "--json").objects()
            #expect(Set(states.compactMap { $0.text("kind") }) == ["put", "get"])
            // The names of state files are derived from paths and URLs, and this test has changed both. So it
            // passes each state file to the command by its path.
            func state(_ prefix: String) throws -> String {
                let name = try #require(home.stateNames.first { $0.hasPrefix(prefix) })
                try FileManager.default.moveItem(atPath: home.states + "/" + name, toPath: home.path + "/" + prefix)
                return home.path + "/" + prefix
            }
            let download = try state("copy.bin")
            try home.run("resume", download).expect(0)
            let copy = FileManager.default.contents(atPath: home.path + "/work/copy.bin")
            #expect(copy == FileManager.default.contents(atPath: home.path + "/work/published.bin"))
            #expect(!FileManager.default.fileExists(atPath: download))

            // The unpacked source has another inode, so it counts as changed. Nothing is deleted.
            let upload = try state("upload.bin")
            try home.run("resume", upload).expect(65)
            let uploads = try FileManager.default.contentsOfDirectory(atPath: server.root + "/uploads").count
            try home.run("cancel", upload).expect(0)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: server.root + "/uploads").count == uploads - 1)
            #expect(!FileManager.default.fileExists(atPath: upload))
        }
    }
}
