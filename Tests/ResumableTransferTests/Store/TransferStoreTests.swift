import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("Entries of a store") struct TransferStoreTests {
    let place: StorePlace

    init() throws { place = try StorePlace() }

    @Test("an entry has the values of its transfer")
    func values() async throws {
        let record = ResumeRecord.uploadSample()
        try place.save("film", record, userInfo: ["title": "Film"], savedAt: 1_700_000_000)
        let entry = try #require(await place.store.entry("film"))
        #expect(entry.name == "film" && entry.id == "film" && entry.kind == .upload && entry.path == "/tmp/source.bin")
        #expect(entry.position == 40 && entry.total == 100 && entry.userInfo == ["title": "Film"])
        #expect(entry.request?.uri == "https://host.example/files/?key=private" && entry.damage == nil)
        #expect(entry.date == Date(timeIntervalSince1970: 1_700_000_000))
        #expect(!entry.isRunning && entry.process == nil && entry.resumeData?.record == record)
        #expect(await place.store.entries() == [entry])
        for name in ["other", ""] { #expect(await place.store.entry(name) == nil) }
    }

    @Test(
        "names with any characters are read back, and different names have different files",
        arguments: [
            "film", "größer.bin", "a/b", "..", ".", ".hidden", "100%", "a%2Fb", "http://h/files/x?y#z", "\n", "-x",
            "x.state",
            "x.lock", ".x.state.tmp", String(repeating: "ä", count: 120),
        ])
    func names(name: String) async throws {
        let stem = try TransferStore.stem(of: name)
        #expect(!stem.bytes.contains(0x2F) && stem.bytes.first != 0x2E && stem.bytes.count <= 240)
        try place.save(name)
        try place.save("other")
        #expect(await Set(place.store.entries().map(\.name)) == [name, "other"])
        #expect(await place.store.entry(name)?.name == name)
    }

    @Test(
        "a name that is empty or too long is an invalid request", arguments: ["", String(repeating: "a", count: 241)])
    func invalidNames(name: String) async throws {
        let source = DataSource(Data([1]))
        do throws(TransferError) {
            _ = try await place.store.upload(TransferRequest("http://127.0.0.1/"), from: source, as: name)
            Issue.record("accepted")
        } catch {
            #expect(error.code == .invalidRequest)
        }
    }

    @Test("an entry that cannot be read is listed as damaged, throws a typed error, and can be discarded")
    func damaged() async throws {
        try place.save("good")
        let text = try #require(FileManager.default.contents(atPath: place.path + "/good.state"))
        _ = try place.file("empty.state", [])
        _ = try place.file("garbage.state", Array("{".utf8))
        _ = try place.file("half.state", text.prefix(text.count / 2))
        _ = try place.file(
            "newer.state",
            Array(String(decoding: text, as: UTF8.self).replacing(#""version" : 2"#, with: #""version" : 3"#).utf8))
        _ = try place.file("open.state", text)
        chmod(place.path + "/open.state", 0o644)
        mkdir(place.path + "/directory.state", 0o700)
        let entries = await place.store.entries()
        let damaged = entries.filter { $0.damage != nil }
        #expect(damaged.map(\.name) == ["directory", "empty", "garbage", "half", "newer", "open"])
        #expect(entries.map(\.name) == (damaged.map(\.name) + ["good"]).sorted())
        for entry in damaged {
            #expect(entry.resumeData == nil && entry.kind == nil && entry.damage?.code == .resumeDataInvalid)
            await #expect(throws: TransferError.self) { try await place.store.resume(entry) }
            await #expect(throws: TransferError.self) {
                try await place.store.upload(
                    TransferRequest("http://127.0.0.1/"), from: DataSource(Data([1])), as: entry.name)
            }
            let isDeleted = try await place.store.discard(entry)
            #expect(!isDeleted)
        }
        // A directory is not removed.
        #expect(await place.store.entries().map(\.name) == ["directory", "good"])
    }

    @Test("an entry that no longer exists cannot be resumed or discarded")
    func stale() async throws {
        try place.save("film")
        let entry = try #require(await place.store.entry("film"))
        unlink(place.path + "/film.state")
        do throws(TransferError) {
            _ = try await place.store.resume(entry)
            Issue.record("resumed")
        } catch {
            #expect(error.code == .resumeDataUsed)
        }
        await #expect(throws: TransferError.self) { try await place.store.discard(entry) }
        #expect(place.names().isEmpty)
    }

    @Test("one transfer at a time locks an entry, until the object of the transfer is released")
    func lock() async throws {
        let destination = DownloadDestination.file(place.path + "/d")
        let request = TransferRequest("http://127.0.0.1:9/x")
        do {
            let first = try await place.store.download(request, to: destination, as: "x")
            do throws(TransferError) {
                _ = try await place.store.download(request, to: destination, as: "x")
                Issue.record("locked twice")
            } catch {
                #expect(error.code == .inUse && error.canRetry && error.message.contains("\(getpid())"))
            }
            _ = try await place.store.download(request, to: destination, as: "y")
            withExtendedLifetime(first) {}
        }
        _ = try await place.store.download(request, to: destination, as: "x")
        #expect(place.names().isEmpty)
    }

    @Test("a name cannot be used for another transfer while the store has an entry with that name")
    func otherTransfer() async throws {
        func code(_ body: () async throws(TransferError) -> Void) async -> TransferError.Code? {
            do throws(TransferError) {
                try await body()
                return nil
            } catch {
                return error.code
            }
        }
        try place.save("up", .uploadSample())
        try place.save("down", .downloadSample())
        let source = DataSource(Data(count: 100))
        let store = place.store
        let upload = TransferRequest("https://host.example/files/?key=private", method: .post)
        let download = TransferRequest("http://host.example/file")
        var other = upload
        other.uri = "https://host.example/files/b"
        #expect(
            await code { () async throws(TransferError) in _ = try await store.upload(other, from: source, as: "up") }
                == .invalidRequest)
        other = upload
        other.method = .put
        #expect(
            await code { () async throws(TransferError) in _ = try await store.upload(other, from: source, as: "up") }
                == .invalidRequest)
        #expect(
            await code { () async throws(TransferError) in _ = try await store.upload(upload, from: source, as: "down")
            }
                == .invalidRequest)
        #expect(
            await code { () async throws(TransferError) in
                _ = try await store.download(download, to: .temporary, as: "down")
            }
                == .invalidRequest)
        #expect(
            await code { () async throws(TransferError) in
                _ = try await store.download(download, to: .file("/tmp/other"), as: "down")
            }
                == .invalidRequest)
        // The signature in a query may change.
        other = upload
        other.uri = "https://host.example/files/?key=renewed"
        #expect(
            await code { () async throws(TransferError) in _ = try await store.upload(other, from: source, as: "up") }
                == nil)
        #expect(
            await code { () async throws(TransferError) in
                _ = try await store.download(download, to: .file("/tmp/file"), as: "down")
            }
                == nil)
        #expect(await store.entries().count == 2)
    }

    @Test("saving an entry keeps members that the store does not define, and replaces only what has changed")
    func unknownMembers() async throws {
        var stored = StoredTransfer(try ResumeData(.uploadSample()), sent: 1, savedAt: 1, userInfo: ["a": "b"])
        struct Options: Codable, Equatable { var sizes: [Int64?], rate: Double, isOn: Bool, nested: [String: [String]] }
        let options = Options(sizes: [1, nil, .max], rate: 0.5, isOn: true, nested: ["x": ["y"]])
        stored.setMember("options", to: options)
        try place.save("x", stored)
        let keeper = try EntryKeeper("x", in: place.store, userInfo: nil)
        _ = try keeper.load()
        let data = try ResumeData(.uploadSample())
        await keeper.save(data, sent: 7)
        await keeper.ended(TransferError(.paused, "", resumeData: data))
        let again = try #require(await place.store.entry("x")?.stored)
        #expect(try again.member("options", as: Options.self) == options)
        #expect(again.userInfo == ["a": "b"] && again.sent == 7 && again.resumeData == data && again.savedAt > 1)
        #expect(throws: DecodingError.self) { try again.member("version", as: Int.self) }
        #expect(place.names() == ["x.state"])
    }

    @Test("the state files of the command `onward` are read as entries", arguments: [1, 2])
    func commandStates(version: Int) async throws {
        let data = try ResumeData(.uploadSample())
        let transfer = String(decoding: try JSONEncoder().encode(EmbeddedResumeData(data)), as: UTF8.self)
        let content =
            version == 1
            ? #""resumeData":"\#(data.data.base64EncodedString())""# : #""kind":"upload","transfer":\#(transfer)"#
        let text = #"""
            {"identity":{"kind":"put","method":"POST","path":"/tmp/source.bin","url":"https://host.example/files/"},
            "options":{},"savedAt":5,"sent":7,"version":\#(version),\#(content)}
            """#
        _ = try place.file("source.bin-3bf2acf1.state", Array(text.utf8))
        let entry = try #require(await place.store.entries().first)
        #expect(entry.name == "source.bin-3bf2acf1" && entry.resumeData == data && entry.damage == nil)
    }

    @Test("the time to list entries is proportional to their number")
    func manyEntries() async throws {
        let bytes = try StoredTransfer(ResumeData(.uploadSample()), sent: 1, savedAt: 1).encoded()
        func addEntries(_ numbers: Range<Int>) throws {
            for number in numbers { _ = try place.file("entry \(number).state", bytes) }
        }
        func processorTime() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        }
        func list() -> Int64 {
            let start = processorTime()
            let entries = place.store.directory.entries()
            let time = processorTime() - start
            #expect(entries.allSatisfy { $0.damage == nil && !$0.isRunning && $0.position == 40 })
            #expect(entries.map(\.name) == entries.map(\.name).sorted())
            return time / Int64(entries.count)
        }
        try addEntries(0..<100)
        _ = list()
        let few = list()
        try addEntries(100..<1500)
        let many = list()
        #expect(many < few * 3, "\(few) ns for each of 100 entries, \(many) ns for each of 1,500")
        let sweep = await place.store.sweep(olderThan: .zero)
        #expect(sweep.entries.count == 1500 && place.names().isEmpty)
    }
}
