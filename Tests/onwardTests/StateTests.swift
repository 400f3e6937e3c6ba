import Foundation
import Glibc
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@testable import onward

@Suite("States of commands")
struct StateTests {
    private static let identity = TransferIdentity(
        kind: .put, path: "/a/big file.bin", method: "PUT", url: "http://h/files/big.bin")

    private static let resumeDataBytes =
        Data("RSMD\0\u{1}".utf8)
        + Data(
            #"""
            {"content":{"upload":{"resumption":{"acknowledged":7,"dialect":8,"length":10,"limits":{},"uri":"http://h/uploads/1"},
            "source":{"size":10}}},"createdAt":1,"generation":0,"hasTicket":false,
            "id":"6D5EB9B3-1D8A-4C75-8E1D-869B8E2770CE","request":{"fields":[],"method":"PUT","uri":"http://h/files/big.bin"}}
            """#.utf8)

    /// Resume data as the library writes it.
    private static func resumeData() throws -> ResumeData {
        let text = try JSONEncoder().encode(EmbeddedResumeData(ResumeData(resumeDataBytes)))
        return try JSONDecoder().decode(EmbeddedResumeData.self, from: text).data
    }

    @Test(
        "Commands with the same source, method and URL have the same state; the state's name contains the file's name")
    func identity() throws {
        let one = Self.identity
        #expect(one.name == "big_file.bin-" + one.name.suffix(8))
        var names: Set<String> = [one.name]
        let url = try TransferURL("http://h/files/big.bin")
        #expect(TransferIdentity.put("/a/big file.bin", url, method: .put) == one)
        names.insert(TransferIdentity.put("/b/big file.bin", url, method: .put).name)
        names.insert(TransferIdentity.put("/a/big file.bin", url, method: .post).name)
        names.insert(TransferIdentity.put("/a/big file.bin", try TransferURL("http://h/files/x"), method: .put).name)
        names.insert(TransferIdentity.get(url, to: "/a/big file.bin").name)
        #expect(names.count == 5)
        let paths: [FilePath] = [
            "/a/-rf", "/a/.hidden", "/a/\u{1B}[2J", "/", FilePath("/a/" + String(repeating: "ä", count: 300)),
            FilePath("/a/gr".utf8 + [0xF6, 0xDF]), "/a/\u{301}x",
        ]
        for path in paths {
            let name = TransferIdentity.put(path, url, method: .put).name
            #expect(!name.hasPrefix("-") && !name.hasPrefix(".") && !name.contains("/") && name.utf8.count < 200)
            #expect(DisplayText.printable(name) == name)
        }
    }

    @Test("A saved state is read back, and only its owner can access the file")
    func roundTrip() throws {
        let place = try TemporaryDirectory()
        let directory = try PrivateDirectory.of(FilePath(place.path + "/x"))
        let saved = SavedTransfer(
            identity: Self.identity, options: .init(tokenFile: "/t"), savedAt: 5,
            resumeData: try Self.resumeData())
        try directory.replace("x.state", with: try saved.stored.encoded())
        let data = try #require(try directory.read("x.state"))
        let read = try SavedTransfer.decode(data, from: "x")
        #expect(read == saved)
        #expect(read.resumeData.position == 7 && read.resumeData.total == 10)
        #expect(directory.names() == ["x.state"])
        let status = try FileDescriptor.open(place.path + "/x.state", [.readOnly]).status()
        #expect(status.permissions == 0o600)
    }

    @Test("The options of a state have the keys of earlier versions")
    func optionKeys() throws {
        let text = #"{"appendSize":4,"caFile":"/c","certificate":"/p","key":"/k","tokenFile":"/t","usesNetrc":true}"#
        let options = SavedTransfer.Options(
            tokenFile: "/t", caFile: "/c", appendSize: 4, shouldUseNetrc: true, certificate: "/p", key: "/k")
        #expect(try JSONDecoder().decode(SavedTransfer.Options.self, from: Data(text.utf8)) == options)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        #expect(try String(decoding: encoder.encode(options), as: UTF8.self) == text)
    }

    @Test("A state that is saved again keeps the members of the file that only another version knows")
    func unknownMembers() async throws {
        let place = try TemporaryDirectory()
        let directory = try PrivateDirectory.of(FilePath(place.path + "/x"))
        let saved = SavedTransfer(
            identity: Self.identity, options: .init(tokenFile: "/t"), savedAt: 5, resumeData: try Self.resumeData())
        var stored = saved.stored
        stored.setMember("later", to: [1, 2])
        try directory.replace("x.state", with: try stored.encoded())
        let file = try StateFile.lock("x", in: directory)
        #expect(try file.load() == stored)
        await file.save(saved.resumeData, sent: 8) { $0.setCommand(Self.identity, .init(caFile: "/c")) }
        #expect(file.saveFailure == nil && file.savedPosition == 7)
        let again = try StoredTransfer.decode(try #require(try directory.read("x.state")), from: "x")
        #expect(try again.member("later", as: [Int].self) == [1, 2])
        let read = try SavedTransfer(again, from: "x")
        #expect(read.identity == Self.identity && read.options == .init(caFile: "/c") && read.sent == 8)
    }

    @Test("An invalid state is refused")
    func invalid() throws {
        #expect(throws: StateError.self) { _ = try SavedTransfer.decode(Data("{}".utf8), from: "x") }
        #expect(throws: StateError.self) { _ = try SavedTransfer.decode(Data(#"{"version":2}"#.utf8), from: "x") }
    }

    @Test("Decoding a damaged state never traps")
    func damaged() throws {
        let saved = SavedTransfer(
            identity: Self.identity, options: .init(), savedAt: 5, resumeData: try Self.resumeData())
        let original = try saved.stored.encoded()
        var generator = SeededGenerator.part(2)
        for _ in 0..<300 {
            var data = original
            data[Int.random(in: 0..<data.count, using: &generator)] = .random(in: 0...255, using: &generator)
            if Bool.random(using: &generator) { data = data.prefix(Int.random(in: 0..<data.count, using: &generator)) }
            _ = try? SavedTransfer.decode(Data(data), from: "x")
        }
    }

    @Test("Paths are converted to absolute paths without links in the directories")
    func paths() throws {
        let place = try TemporaryDirectory()
        let given = FilePath(place.path)
        let root = try #require(given.absolute)
        #expect((given + "/./x").absolute == root + "/x")
        #expect((given + "/x/").absolute == root + "/x")
        #expect((given + "/nowhere/x").absolute == nil)
        #expect(FilePath("/x").absolute == "/x" && FilePath("/").absolute == "/" && FilePath("").absolute == nil)
        symlink(place.path, place.path + "/link")
        #expect((given + "/link/x").absolute == root + "/x")
        #expect((given + "/link").absolute == root + "/link")
        #expect((given + "/link/\u{301}x").absolute == root + "/\u{301}x")
    }

    @Test(
        "A path is quoted so that a shell reads it as one word",
        arguments: [
            ("big.bin-1a", "big.bin-1a"), ("/a/b c", "'/a/b c'"), ("it's", #"'it'\''s'"#), ("", "''"), ("a;b", "'a;b'"),
            ("a\u{1B}'\\", #"$'a\x1B\'\\'"#), (FilePath([0x61, 0xF6]), #"$'a\xF6'"#),
        ] as [(FilePath, String)])
    func words(path: FilePath, word: String) { #expect(ProgressMessages.shellWord(path) == word) }

    @Test("A state of the first version is read and keeps its name")
    func firstVersion() throws {
        let text = #"""
            {"identity":{"kind":"put","method":"PUT","path":"/a/größer.bin","url":"http://h/files/big.bin"},
            "options":{"appendSize":5,"caFile":"/c","tokenFile":"/t"},"savedAt":5,"sent":7,"version":1,
            "resumeData":"\#(Self.resumeDataBytes.base64EncodedString())"}
            """#
        let saved = try SavedTransfer.decode(Data(text.utf8), from: "x")
        #expect(saved.identity.path == "/a/größer.bin" && saved.options.tokenFile == "/t")
        #expect(saved.identity.name == "größer.bin-3bf2acf1")
        let expected = try ResumeData(Self.resumeDataBytes)
        #expect(saved.sent == 7 && saved.resumeData == expected)
        let again = String(decoding: try saved.stored.encoded(), as: UTF8.self)
        #expect(again.contains(#""path" : "/a/größer.bin""#) && again.contains(#""tokenFile" : "/t""#), "\(again)")
    }

    @Test("A state contains version 2 and the kind, and is refused if its parts contradict each other")
    func secondVersion() throws {
        let saved = SavedTransfer(
            identity: Self.identity, options: .init(), sent: 8, savedAt: 5, resumeData: try Self.resumeData())
        let text = String(decoding: try saved.stored.encoded(), as: UTF8.self)
        #expect(text.contains(#""version" : 2"#) && text.contains(#""kind" : "upload""#), "\(text)")
        #expect(try SavedTransfer.decode(Data(text.utf8), from: "x") == saved)
        for (part, other) in [
            (#""kind" : "upload""#, #""kind" : "download""#), (#""kind" : "put""#, #""kind" : "get""#),
            (#""version" : 2"#, #""version" : 3"#), (#""version" : 2"#, #""version" : 0"#),
            (#""acknowledged" : 7"#, #""acknowledged" : 11"#),
        ] {
            let changed = text.replacing(part, with: other)
            #expect(changed != text)
            #expect(throws: StateError.self, "\(part)") { _ = try SavedTransfer.decode(Data(changed.utf8), from: "x") }
        }
    }

    @Test("Paths of any bytes are read back from a state unchanged")
    func anyBytes() throws {
        for path in [FilePath("/a/gr".utf8 + [0xF6, 0xDF]), "/a/\u{301}x", "/a/e\u{301}", "/a/\u{E9}", "/a/\n\u{1B}"] {
            let identity = TransferIdentity(kind: .put, path: path, method: "PUT", url: "http://h/")
            let saved = SavedTransfer(
                identity: identity, options: .init(tokenFile: path), savedAt: 5, resumeData: try Self.resumeData())
            let read = try SavedTransfer.decode(try saved.stored.encoded(), from: "x")
            #expect(read == saved && read.identity.path.bytes == path.bytes)
        }
    }
}
