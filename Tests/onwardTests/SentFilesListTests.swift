import Foundation
import Glibc
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@testable import onward

@Suite("Lists of sent files")
struct SentFilesListTests {
    private func members(_ count: Int, in directory: String = "/nowhere") -> [TransferIdentity] {
        (0..<count).map {
            TransferIdentity(
                kind: .put, path: FilePath("\(directory)/file number \($0)"), method: "POST", url: "http://h/files/")
        }
    }

    private func entry(_ member: TransferIdentity) -> SentFilesList.Entry {
        SentFilesList.Entry(
            path: member.path, size: 1, modified: 2, inode: 3, status: 201, location: "http://h/files/x")
    }

    /// The CPU time of this thread in seconds.
    private func threadTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The result of reading the list again.
    private func found(
        _ name: FilePath, _ place: TemporaryDirectory
    ) throws -> (members: Int, missing: Bool, text: [FilePath])? {
        guard let list = SentFilesList(name, in: try place.directory()) else { return nil }
        return (list.transfers.count, !list.isComplete, list.sent.sorted { $0.description < $1.description })
    }

    @Test("Adding the last of 4,000 files takes as long as adding the first")
    func linear() throws {
        let place = try TemporaryDirectory()
        let members = members(4_000, in: "/" + String(repeating: "d", count: 500))
        var list = try SentFilesList(of: members, in: try place.directory())
        var costs: [Double] = []
        for part in 0..<10 {
            let start = threadTime()
            for member in members[(part * 400)..<((part + 1) * 400)] {
                try list.append(entry(member))
                let isThere = list.refresh()
                #expect(isThere)
            }
            costs.append(threadTime() - start)
        }
        #expect(list.isComplete && list.sent.count == 4_000)
        // The minimum of several measurements is used, because the machine may be busy at times.
        let last = try #require(costs[7...].min())
        #expect(last < 4 * costs[0], "\(costs)")
        let again = try #require(SentFilesList(list.fileName, in: try place.directory()))
        #expect(again.isComplete && again.sent.count == 4_000 && again.transfers == Set(members))
        #expect(try place.bytes(list.fileName).count > 2 << 20)
    }

    @Test("A truncated record is ignored, and the records before and after it are read")
    func torn() throws {
        let place = try TemporaryDirectory()
        let members = members(3)
        var list = try SentFilesList(of: members, in: try place.directory())
        let name = list.fileName
        try list.append(entry(members[0]))
        let before = try place.bytes(name)
        try list.append(entry(members[1]))
        let original = try place.bytes(name)
        for end in before.count..<original.count {
            try place.directory().replace(name, with: Data(original[..<end]))
            // The record can be complete without the line feed at its end.
            let isThere = end >= original.count - 1
            #expect(try found(name, place)?.text == (isThere ? members[..<2] : members[..<1]).map(\.path), "\(end)")
            var again = try #require(SentFilesList(name, in: try place.directory()))
            try again.append(entry(members[2]))
            #expect(try found(name, place)?.text.last == members[2].path, "\(end)")
            #expect(try found(name, place)?.text.first == members[0].path, "\(end)")
        }
    }

    @Test("A changed byte in the list affects only the record that contains the byte")
    func altered() throws {
        let place = try TemporaryDirectory()
        let members = members(20)
        var list = try SentFilesList(of: members, in: try place.directory())
        for member in members { try list.append(entry(member)) }
        let original = try place.bytes(list.fileName)
        let start = try #require(original.firstRange(of: Array(#"{"sent""#.utf8))?.lowerBound)
        var generator = SeededGenerator.part(1)
        for _ in 0..<100 {
            var bytes = original
            bytes[Int.random(in: start..<original.count, using: &generator)] ^=
                1 << UInt8.random(in: 0...7, using: &generator)
            try place.directory().replace(list.fileName, with: Data(bytes))
            // A lost line feed does not join two records, because two line feeds separate them.
            let count = try #require(try found(list.fileName, place)).text.count
            #expect(count >= 19, "seed \(SeededGenerator.runSeed)")
        }
        try place.directory().replace(list.fileName, with: Data(original + [UInt8](repeating: 0, count: 100)))
        #expect(try found(list.fileName, place)?.text.count == 20)
    }

    @Test("A list of any size in the old format is read, and is continued in the new format")
    func oldForm() throws {
        let place = try TemporaryDirectory()
        let members = members(600, in: "/" + String(repeating: "d", count: 2000))
        let name = SentFilesList.name(of: members)
        let encoder = JSONEncoder()
        let memberText = String(decoding: try encoder.encode(members), as: UTF8.self)
        let entryText = String(decoding: try encoder.encode(members.dropLast().map(entry)), as: UTF8.self)
        let text = #"{"version":2,"members":\#(memberText),"entries":\#(entryText)}"#
        #expect(text.utf8.count > 2 << 20)
        try place.directory().replace(name, with: Data(text.utf8))
        var list = try #require(SentFilesList(name, in: try place.directory()))
        #expect(list.transfers == Set(members) && list.sent.count == 599 && !list.isComplete)
        try list.append(entry(members[599]))
        let isThere = list.refresh()
        #expect(isThere && list.isComplete)
        #expect(try found(name, place)?.missing == false)
        #expect(try place.bytes(name).first != UInt8(ascii: "{"))
    }

    @Test("A file that has changed since it was sent is not treated as sent")
    func changed() throws {
        let place = try TemporaryDirectory()
        let path = FilePath(place.path + "/file")
        try Data([1]).write(to: URL(filePath: path.repairedText))
        let member = TransferIdentity(kind: .put, path: path, method: "POST", url: "http://h/files/")
        var list = try SentFilesList(of: [member], in: try place.directory())
        try list.append(SentFilesList.Entry(path, try path.status(), status: 201, location: nil))
        let isThere = list.refresh()
        #expect(isThere && list.entry(of: path)?.status == 201)
        try Data([1, 2]).write(to: URL(filePath: path.repairedText))
        #expect(list.entry(of: path) == nil)
    }

    /// The state of an upload that has sent nothing.
    private func saved(_ member: TransferIdentity) throws -> SavedTransfer {
        let text =
            #"""
            {"content":{"upload":{"resumption":{"acknowledged":0,"dialect":8,"length":1,"limits":{},"uri":"http://h/uploads/1"},
            "source":{"size":1}}},"createdAt":1,"generation":0,"hasTicket":false,
            "id":"6D5EB9B3-1D8A-4C75-8E1D-869B8E2770CE","request":{"fields":[],"method":"POST","uri":"http://h/files/"}}
            """#
        let data = try JSONDecoder().decode(EmbeddedResumeData.self, from: Data(text.utf8)).data
        return SavedTransfer(identity: member, options: .init(tokenFile: "/t"), savedAt: 5, resumeData: data)
    }

    @Test("The state of an upload is read back until the upload has ended, or its file was sent")
    func states() throws {
        let place = try TemporaryDirectory()
        let members = members(4)
        var list = try SentFilesList(of: members, in: try place.directory())
        try list.append(members[..<3].map { try .begun(try saved($0)) })
        let expected = Set(members[..<3].map(\.path))
        #expect(Set(list.begun.keys) == expected && !list.refreshedCopy(in: place).begun.isEmpty)
        #expect(list.refreshedCopy(in: place).begun[members[1].path] == (try saved(members[1])))
        try list.append([.ended(members[0].path), .sent(entry(members[1]))])
        #expect(Set(list.begun.keys) == [members[2].path])
        let again = list.refreshedCopy(in: place)
        #expect(Set(again.begun.keys) == [members[2].path] && again.sent == [members[1].path])
        // An upload can begin again.
        try list.append([.begun(try saved(members[0]))])
        #expect(Set(list.refreshedCopy(in: place).begun.keys) == [members[0].path, members[2].path])
    }

    /// A record in the form of earlier versions.
    private struct EarlierRecord: Encodable {
        struct State: Encodable {
            var identity: TransferIdentity
            var options: SavedTransfer.Options
            var savedAt: Int64
            var transfer: EmbeddedResumeData
        }

        var begun: State
    }

    @Test("The state of an upload has the form of a state file in a list, too; records of earlier versions are read")
    func formOfStates() throws {
        let place = try TemporaryDirectory()
        let member = members(1)[0]
        let saved = try saved(member)
        let bytes = try JSONEncoder().encode(saved)
        #expect(try SavedTransfer.decode(bytes, from: "x") == saved)
        #expect(String(decoding: bytes, as: UTF8.self).contains(#""version":2"#))
        let list = try SentFilesList(of: [member], in: try place.directory())
        let record = EarlierRecord(
            begun: .init(
                identity: member, options: saved.options, savedAt: saved.savedAt, transfer: .init(saved.resumeData)))
        _ = try place.directory().append(try RecordLines.line(record), to: list.fileName)
        #expect(list.refreshedCopy(in: place).begun[member.path] == saved)
    }

    private func object(_ text: some Collection<UInt8>) throws -> NSDictionary {
        try #require(try JSONSerialization.jsonObject(with: Data(text)) as? NSDictionary)
    }

    /// The JSON objects of the records in a list, in order.
    private func objects(_ name: FilePath, _ place: TemporaryDirectory) throws -> [NSDictionary] {
        // 8 digits and a space precede the text.
        try place.bytes(name).split(separator: UInt8(ascii: "\n")).map { try object($0.dropFirst(9)) }
    }

    @Test("Each line of a list is a checksum and a JSON object with the members that docs/data-formats.md describes")
    func form() throws {
        let place = try TemporaryDirectory()
        let member = members(1)[0]
        var list = try SentFilesList(of: [member], in: try place.directory())
        try list.append([.begun(try saved(member)), .sent(entry(member)), .ended(member.path)])
        let identity = #"{"kind":"put","method":"POST","path":"/nowhere/file number 0","url":"http://h/files/"}"#
        let transfer = #"""
            {"content":{"upload":{"resumption":{"acknowledged":0,"dialect":8,"length":1,"limits":{},
            "uri":"http://h/uploads/1"},"source":{"size":1}}},"createdAt":1,"generation":0,"hasTicket":false,
            "id":"6D5EB9B3-1D8A-4C75-8E1D-869B8E2770CE","request":{"fields":[],"method":"POST","uri":"http://h/files/"}}
            """#
        let expected = [
            #"{"version":3}"#, #"{"member":\#(identity)}"#,
            #"""
            {"begun":{"version":2,"kind":"upload","savedAt":5,"transfer":\#(transfer),"identity":\#(identity),
            "options":{"tokenFile":"/t"}}}
            """#,
            #"""
            {"sent":{"inode":3,"location":"http://h/files/x","modified":2,"path":"/nowhere/file number 0","size":1,
            "status":201}}
            """#,
            #"{"ended":"/nowhere/file number 0"}"#,
        ]
        #expect(try objects(list.fileName, place) == expected.map { try object($0.utf8) })
        // Slashes are not escaped.
        #expect(try !place.bytes(list.fileName).contains(UInt8(ascii: "\\")))
    }

    @Test("A list whose records have their members in the order of earlier versions is read")
    func earlierOrder() throws {
        let text = #"""
            9af23cea {"version":3}

            f4766bbe {"member":{"kind":"put","path":{"bytes":[47,116,109,112,47,108,105,115,116,47,99,255]},\#
            "method":"POST","url":"http://127.0.0.1:18517/files/list/"}}

            51d7dbf5 {"member":{"kind":"put","path":"/tmp/list/say \"b\"\\\u0001é","method":"POST",\#
            "url":"http://127.0.0.1:18517/files/list/"}}

            20374175 {"sent":{"path":{"bytes":[47,116,109,112,47,108,105,115,116,47,99,255]},"size":1,\#
            "modified":1795839499429632933,"inode":16269533,"status":201,\#
            "location":"http://127.0.0.1:18517/files/list/c%25FF"}}

            f9886583 {"begun":{"version":2,"kind":"upload","sent":0,"savedAt":1795839499,\#
            "transfer":{"id":"A64DEECC-2AB7-425B-AFC4-E858B5FFEC8C","generation":0,"createdAt":1795839499,\#
            "hasTicket":false,"request":{"uri":"http://127.0.0.1:18517/files/list/","method":"POST",\#
            "fields":[["Content-Disposition",\#
            "inline; filename=\"say _b____\"; filename*=UTF-8''say%20%22b%22%5C%01%C3%A9"]]},\#
            "content":{"upload":{"resumption":{\#
            "uri":"http://127.0.0.1:18517/uploads/39fc5715d1418e8edf3abf917a699451","dialect":8,"acknowledged":0,\#
            "length":1,"limits":{"maxAge":604800},"expires":1796444299},\#
            "source":{"file":{"path":"/tmp/list/say \"b\"\\\u0001é","modified":1795839499429632933,\#
            "inode":16269532,"device":65024,"owner":0},"size":1,\#
            "sample":"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"}}}},\#
            "identity":{"kind":"put","path":"/tmp/list/say \"b\"\\\u0001é","method":"POST",\#
            "url":"http://127.0.0.1:18517/files/list/"},"options":{}}}

            """#
        let place = try TemporaryDirectory()
        let name: FilePath = "several-1.done"
        try place.directory().replace(name, with: Data(text.utf8))
        let list = try #require(SentFilesList(name, in: try place.directory()))
        let sent = FilePath(Array("/tmp/list/c".utf8) + [0xFF])
        let begun = FilePath("/tmp/list/say \"b\"\\\u{1}\u{E9}")
        #expect(Set(list.transfers.map(\.path)) == [sent, begun] && list.sent == [sent])
        let saved = try #require(list.begun[begun])
        #expect(saved.identity.path == begun && saved.sent == 0 && saved.savedAt == 1_795_839_499)
        #expect(saved.resumeData.file == begun && saved.resumeData.total == 1)
    }

    @Test(
        "Any path and any number is read back as it was, and its record is one line",
        arguments: [
            FilePath([0x2F, 0xFF, 0x22]), "/\"\\\n\r\t\u{1}\u{1F}\u{7F}", "/e\u{301} \u{1F600}\u{2028}", "/\r\n",
            "/\0",
        ])
    func texts(path: FilePath) throws {
        let place = try TemporaryDirectory()
        let member = TransferIdentity(kind: .put, path: path, method: "POST", url: "http://h/\"\\/")
        var list = try SentFilesList(of: [member], in: try place.directory())
        for number in [Int64.min, -1, 0, .max] {
            let entry = SentFilesList.Entry(
                path: path, size: number, modified: number, inode: .max, status: 201, location: nil)
            let count = try objects(list.fileName, place).count
            try list.append([.sent(entry)])
            #expect(try objects(list.fileName, place).count == count + 1)
            let records = RecordLines.records([String: SentFilesList.Entry].self, in: try place.bytes(list.fileName))
            #expect(records.last == ["sent": entry])
        }
        let again = list.refreshedCopy(in: place)
        #expect(again.transfers == [member] && again.sent == [path])
    }

    @Test("Records that another process has appended are read, too")
    func twoWriters() throws {
        let place = try TemporaryDirectory()
        let members = members(4)
        var first = try SentFilesList(of: members, in: try place.directory())
        var second = first.refreshedCopy(in: place)
        try first.append(entry(members[0]))
        try second.append(entry(members[1]))
        try second.append(entry(members[2]))
        try first.append(entry(members[3]))
        for list in [first, second] {
            var list = list
            let isThere = list.refresh()
            #expect(isThere && list.isComplete && list.sent.count == 4)
        }
    }

    @Test("A record that another process was writing when the list was read is read when it is complete")
    func incomplete() throws {
        let place = try TemporaryDirectory()
        let members = members(2)
        var list = try SentFilesList(of: members, in: try place.directory())
        let before = try place.bytes(list.fileName)
        try list.append(entry(members[0]))
        let after = try place.bytes(list.fileName)
        for end in before.count..<after.count {
            try place.directory().replace(list.fileName, with: Data(after[..<end]))
            var reader = list.refreshedCopy(in: place)
            _ = try place.directory().append(Array(after[end...]), to: list.fileName)
            let isThere = reader.refresh()
            #expect(isThere && reader.sent == [members[0].path], "\(end)")
        }
    }

    @Test("Reading damaged lists never traps")
    func damaged() throws {
        let place = try TemporaryDirectory()
        for text in ["", "{", "{}", "\n", "00000000 {}\n", "x", #"{"version":2,"members":[],"entries":[]}"#] {
            try place.directory().replace("several-1.done", with: Data(text.utf8))
            let list = SentFilesList("several-1.done", in: try place.directory())
            #expect(list == nil || list?.transfers.isEmpty == true)
        }
    }
}

extension TemporaryDirectory {
    fileprivate func directory() throws -> PrivateDirectory { try PrivateDirectory.of(FilePath(path + "/x")) }

    /// The content of the list's file.
    fileprivate func bytes(_ name: FilePath) throws -> [UInt8] {
        Array(try #require(FileManager.default.contents(atPath: path + "/" + name.repairedText)))
    }
}

extension SentFilesList {
    fileprivate mutating func append(_ entry: Entry) throws { try append([.sent(entry)]) }

    /// The list as another process reads it.
    fileprivate func refreshedCopy(in place: TemporaryDirectory) -> SentFilesList {
        (try? place.directory()).flatMap { SentFilesList(fileName, in: $0) }!
    }
}
