import FoundationEssentials
import Glibc
import Testing

/// Programs that copy a folder by reading its listings (Debian: rclone, lftp, wget), with the options that users give.
@Suite("Folders and existing clients", .blocking)
struct FolderToolTests {
    private static let files: [String] = [
        "plain.txt", "with space.txt", "it's.txt", "a \"quoted\" word.txt", "100%.txt", "%41.txt", "%2F.txt", "äöü.txt",
        "日本語.bin", "hash#tag.txt", "is it?.txt", "?x=1.txt", "a&b&amp;c.txt", ".hidden", "..dots", "plus+plus.txt",
        "semi;colon.txt", "[brackets].txt", "~tilde.txt", "comma,equals=.txt", "at@.txt", "page.html",
        "image.svg",
        "empty", "sub/co:lon.txt", "sub/sub sub/two.txt", "sub/sub sub/.three/four.txt", "ü #1/é?.txt", "50% off/a.txt",
        "-rf/-x.txt",
    ]

    /// Fills `files/folder` of the server and returns the content of every file by its path.
    private func fill(_ server: ServerProcess, without ignored: Set<String> = []) throws -> [String: [UInt8]] {
        var contents: [String: [UInt8]] = [:]
        for (number, name) in Self.files.enumerated() where !ignored.contains(name) {
            contents[name] = name == "empty" ? [] : Payload.bytes(100 + number * 997, seed: UInt64(number + 1))
            try server.makeDirectories("folder/" + name.split(separator: "/").dropLast().joined(separator: "/"))
            try server.place(contents[name] ?? [], as: "folder/" + name)
        }
        // This directory has more files than a page of JSON, and perhaps more than a client expects in a listing.
        for number in 0..<1100 { contents["many/\(number).txt"] = Array("\(number)".utf8) }
        try server.makeDirectories("folder/many")
        for number in 0..<1100 { try server.place(Array("\(number)".utf8), as: "folder/many/\(number).txt") }
        return contents
    }

    private func copy(at path: String, without ignored: Set<String> = []) -> [String: [UInt8]] {
        var contents: [String: [UInt8]] = [:]
        for name in (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? [] {
            var isDirectory = false
            _ = FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isDirectory)
            let last = String(name.split(separator: "/").last ?? "")
            guard !isDirectory, !ignored.contains(last) else { continue }
            contents[name] = FileManager.default.contents(atPath: path + "/" + name).map { [UInt8]($0) }
        }
        return contents
    }

    private func expectEqual(
        _ copy: [String: [UInt8]], _ original: [String: [UInt8]], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let names = Set(copy.keys)
        let expected = Set(original.keys)
        #expect(names == expected, "\(names.symmetricDifference(expected).sorted())", sourceLocation: sourceLocation)
        let different = names.intersection(expected).filter { copy[$0] != original[$0] }
        #expect(different.isEmpty, "\(different.sorted())", sourceLocation: sourceLocation)
    }

    @Test("rclone copies a folder", .enabled(if: Tool.rclone.isInstalled, "rclone is not installed"))
    func rclone() throws {
        try withServer { server in
            let original = try fill(server)
            let target = server.directory.path + "/copy"
            let run = try Tool.rclone.start(["copy", "--http-url", server.url("/files/folder/"), ":http:", target])
            #expect(try run.awaitEnding(within: .seconds(120)) == .exited(0), "\(run.errorOutput)")
            expectEqual(copy(at: target), original)
        }
    }

    @Test("lftp mirrors a folder", .enabled(if: Tool.lftp.isInstalled, "lftp is not installed"))
    func lftp() throws {
        try withServer { server in
            // lftp 4.9 skips links to names that begin with a tilde, in any spelling.
            let original = try fill(server, without: ["~tilde.txt"])
            let target = server.directory.path + "/copy"
            let run = try Tool.lftp.start(["-c", "open \(server.url("/files/folder/")); mirror . \(target)"])
            #expect(try run.awaitEnding(within: .seconds(120)) == .exited(0), "\(run.errorOutput)")
            expectEqual(copy(at: target), original)
        }
    }

    @Test("wget -r copies a folder", .enabled(if: Tool.wget.isInstalled, "wget is not installed"))
    func wget() throws {
        try withServer { server in
            // Without the option --no-iri, wget 1.21 decodes links twice, so it requests other names instead of these.
            let original = try fill(server, without: ["%41.txt", "%2F.txt"])
            let target = server.directory.path + "/copy"
            let run = try Tool.wget.start([
                "-r", "-np", "-nH", "--cut-dirs=2", "-P", target, server.url("/files/folder/"),
            ])
            #expect(try run.awaitEnding(within: .seconds(120)) == .exited(0), "\(run.errorOutput.suffix(2000))")
            // wget keeps the pages that it has read.
            expectEqual(copy(at: target, without: ["index.html"]), original)
        }
    }
}
