import CommandLineInterface
import Foundation
import Glibc
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@testable import onward

@Suite("Folders: lists of servers")
struct FolderListingTests {
    private func listing(
        _ content: String, _ fields: Fields = [:], from uri: String = "http://h/files/a/"
    ) throws(CommandFailure) -> FolderListing {
        let response = TransferResponse(status: 200, fields: fields, content: Array(content.utf8))
        return try FolderListing(response, isComplete: true, from: uri)
    }

    @Test("A page has entries and the URI of the next page; unknown members are ignored")
    func page() throws {
        let text = #"""
            [{"modified":"Thu, 26 Nov 2026 12:00:00 GMT","name":"a","size":3,"type":"file","url":"http://other/a"},
            {"name":"b","type":"directory","more":[1]}]
            """#
        let page = try listing(text, ["Link": "</files/a/?limit=2&after=b>; rel=\"next\""])
        #expect(page.entries.map(\.name) == ["a", "b"] && page.entries[0].size == 3 && page.entries[1].size == nil)
        #expect(page.entries[0].modificationTime(now: 1_800_000_000) == 1_795_694_400)
        #expect(page.next == "http://h/files/a/?limit=2&after=b")
        #expect(try listing("[]").next == nil)
    }

    @Test(
        "The link to the next page is found among other links",
        arguments: [
            #"<a?1>; rel=prev, <b?2>; rel="next""#, #"<b?2>;title="x, y"; REL = next"#,
            #"<b?2>; rel="next", <c>; rel=up"#, #"<b?2>; rel="next last""#,
            #"<a?1>; rel="prev first",<b?2>;rel="last NEXT""#,
        ])
    func links(value: String) throws {
        #expect(try listing("[]", ["Link": value]).next == "http://h/files/a/b?2")
    }

    @Test(
        "A page that continues at another server, or with itself, is an error",
        arguments: [
            "<http://other/files/a/>; rel=next", "<https://h/files/a/>; rel=next", "<http://h:81/files/a/>; rel=next",
            "<//other/x>; rel=next", "<http://h/files/a/>; rel=next", "<>; rel=next, <.>; rel=next",
        ])
    func foreignLinks(value: String) {
        #expect { try listing("[]", ["Link": value]) } throws: { error in
            (error as? CommandFailure)?.status == .unavailable
        }
    }

    @Test(
        "Content that is not a list of files in JSON is an error",
        arguments: ["", "<html>", "{}", "[1]", #"[{"name":1,"type":"file"}]"#, #"[{"type":"file"}]"#, "[{}"])
    func malformed(content: String) {
        #expect { try listing(content, ["Content-Type": "text/html"]) } throws: { error in
            let failure = error as? CommandFailure
            return failure?.code == "listing-unusable" && failure?.message.contains("text/html") == true
        }
    }

    @Test(
        "A name that could lead out of its directory is not a file name",
        arguments: ["", ".", "..", "/", "a/b", "../a", "/etc/passwd", "a\0b", "a/", "./a"])
    func unsafeNames(name: String) {
        let entry = FolderListing.Entry(name: name, type: "file")
        #expect { try entry.fileName() } throws: { ($0 as? CommandFailure)?.code == "name-unusable" }
    }

    @Test(
        "Any other name is a file name, byte for byte",
        arguments: ["a", "...", "..%2f", "%2e%2e", "a\\b", "é", "e\u{301}", "a\nb", "-rf", "~", "C:"])
    func names(name: String) throws {
        let entry = FolderListing.Entry(name: name, type: "file")
        #expect(try entry.fileName().bytes == Array(name.utf8))
    }
}

@Suite("Folders: decisions")
struct FolderDecisionTests {
    private func version(_ status: Status, _ fields: Fields) -> RemoteVersion {
        RemoteVersion(TransferResponse(status: status, fields: fields), size: 3)
    }

    @Test("A response to HEAD states whether the server has a file of the same size, and its digest")
    func versions() {
        let digest = [UInt8](repeating: 7, count: 32)
        let field = DigestField(values: [(.sha256, digest)]).serialized
        #expect(
            version(200, ["Content-Length": "3", "Repr-Digest": field]) == .sameSize(digest: digest, modified: nil))
        #expect(version(200, ["Content-Length": "4", "Repr-Digest": field]) == .other)
        #expect(version(200, ["Repr-Digest": field]) == .other)
        #expect(version(200, ["Content-Length": "3", "Content-Encoding": "gzip", "Repr-Digest": field]) == .other)
        #expect(version(404, ["Content-Length": "3"]) == .other && version(410, [:]) == .other)
        for status: Status in [401, 403, 405, 500, 304, 308] { #expect(version(status, [:]) == .unknown) }
    }

    @Test("A modification time counts only if no later version can have the same one")
    func times() {
        let old = "Thu, 26 Nov 2026 12:00:00 GMT"
        let fields: Fields = ["Content-Length": "3", "Last-Modified": old, "ETag": "\"x\""]
        func at(_ date: String) -> RemoteVersion { version(200, fields.appending("Date", date)) }
        #expect(at("Thu, 26 Nov 2026 12:01:00 GMT") == .sameSize(digest: nil, modified: 1_795_694_400))
        #expect(at("Thu, 26 Nov 2026 12:00:59 GMT") == .sameSize(digest: nil, modified: nil))
        #expect(version(200, fields) == .sameSize(digest: nil, modified: nil))
    }

    @Test("The exit status of a folder is 75 if running the command again can help, else that of the worst failure")
    func statuses() {
        typealias Status = onward.ExitStatus
        #expect(Status.worst(.done, .done) == .done)
        #expect(Status.worst(.notAllowed, .tryAgain) == .tryAgain && Status.worst(.tryAgain, .done) == .tryAgain)
        #expect(Status.worst(.sourceChanged, .unavailable) == .unavailable)
        #expect(Status.worst(.notAllowed, .inputOutput) == .notAllowed && Status.worst(.done, .noSource) == .noSource)
    }

    @Test("The URL of an entry has all bytes of its path, percent-encoded where necessary")
    func urls() throws {
        let url = try TransferURL("http://me:pw@h/files/a%20b/")
        #expect(url.entry("").request == "http://me:pw@h/files/a%20b/")
        #expect(url.entry("x y/é?#%2f").identity == "http://h/files/a%20b/x%20y/%C3%A9%3F%23%252f")
        #expect(url.entry(FilePath([0xFF, 0x0A])).identity == "http://h/files/a%20b/%FF%0A")
        #expect(url.entry("x", isFolder: true).request == "http://me:pw@h/files/a%20b/x/")
        #expect(try TransferURL("http://h").entry("x").request == "http://h/x")
    }

    @Test("The summary has the numbers of files that were transferred, unchanged and failed")
    func summary() {
        let progress = GroupProgress(folder: "/d", total: nil, now: 0)
        #expect(progress.summary("Sent", now: 0) == "Sent 0 files (0 B in 0.0 s).")
        progress.begin("/d/a", kept: 0)
        progress.end("/d/a", size: 1000)
        progress.begin("/d/b", kept: 500)
        progress.end("/d/b", size: 500, isUnchanged: true)
        progress.begin("/d/c", kept: 0)
        progress.end("/d/c", size: nil)
        #expect(
            progress.summary("Sent", now: 2) == "Sent 1 file (1.00 kB in 2.0 s, 500 B/s); 1 unchanged; 1 failed.")
        #expect(progress.line(now: 2).name == "2 files")
        progress.setTotal(GroupProgress.Total(count: 3, bytes: 3000))
        #expect(progress.line(now: 2).name == "2 of 3 files" && progress.line(now: 2).total == 3000)
    }
}

extension Fields {
    fileprivate func appending(_ name: String, _ value: String) -> Fields {
        var result = self
        result.append(name, value)
        return result
    }
}

@Suite("Folders: files of this machine")
struct LocalTreeTests {
    /// The items of a tree: files and directories by their paths, omitted entries and problems with a mark.
    private func items(_ path: String) throws -> [String] {
        var tree = try LocalTree(FileDescriptor.open(path, [.readOnly, .directory]))
        var items: [String] = []
        while let item = tree.next() {
            switch item {
            case .directory(let path): items.append(path.description + "/")
            case .file(let file): items.append(file.path.description)
            case .omitted(let path, _): items.append("omitted \(path)")
            case .problem(let path, let failure): items.append("\(failure.code) \(path.bytes.count)")
            }
        }
        return items.sorted()
    }

    @Test("Symbolic links are not followed, pipes are left out, and names need not be UTF-8")
    func links() throws {
        let place = try TemporaryDirectory()
        _ = try place.file("outside", [1])
        let root = place.path + "/root"
        try FileManager.default.createDirectory(atPath: root + "/sub/empty", withIntermediateDirectories: true)
        _ = try place.file("root/a", [1])
        _ = try place.file("root/sub/b", [1])
        symlink("../outside", root + "/link")
        symlink("/", root + "/sub/all")
        mkfifo(root + "/pipe", 0o600)
        let directory = try FileDescriptor.open(root, [.readOnly, .directory])
        _ = try directory.open(at: FilePath([0xFF]), [.writeOnly, .create])
        #expect(
            try items(root) == [
                "/", #"\xFF"#, "a", "omitted link", "omitted pipe", "omitted sub/all", "sub/", "sub/b", "sub/empty/",
            ])
    }

    @Test("A directory that is replaced while the tree is read is what it has become: a file, a link or nothing")
    func replaced() throws {
        let place = try TemporaryDirectory()
        let names = (0..<8).map { "\($0)" }
        let manager = FileManager.default
        for name in names {
            try manager.createDirectory(atPath: "\(place.path)/\(name)", withIntermediateDirectories: false)
        }
        var tree = try LocalTree(FileDescriptor.open(place.path, [.readOnly, .directory]))
        guard case .directory("")? = tree.next(), case .directory(let first)? = tree.next() else {
            Issue.record("the tree begins with other items")
            return
        }
        // The system has listed all names already.
        let others = names.filter { $0 != first.description }
        for name in others { try manager.removeItem(atPath: "\(place.path)/\(name)") }
        _ = try place.file(others[0], [1])
        symlink("/", "\(place.path)/\(others[1])")
        var found: [String] = []
        while let item = tree.next() {
            switch item {
            case .file(let file): found.append("\(file.path): \(file.status.size)")
            case .omitted(let path, let reason): found.append("\(path): \(reason)")
            case .directory(let path), .problem(let path, _): found.append("\(path)")
            }
        }
        #expect(found.sorted() == ["\(others[0]): 1", "\(others[1]): a symbolic link is not followed"])
    }

    @Test("Directories that are nested too deeply are reported, even if their path is too long for the system")
    func depth() throws {
        let place = try TemporaryDirectory()
        var directory = try FileDescriptor.open(place.path, [.readOnly, .directory])
        let name = FilePath(String(repeating: "d", count: 100))
        for _ in 0..<(LocalTree.maxDepth + 2) { directory = try directory.createDirectory(named: name) }
        let items = try items(place.path)
        #expect(items.count == LocalTree.maxDepth + 2)
        #expect(items.contains("name-unusable \(101 * (LocalTree.maxDepth + 1) - 1)"), "\(items.last ?? "")")
    }

    @Test("A directory is new if the directory that contains it is new, unless the property is set")
    func isFolderMissing() throws {
        let place = try TemporaryDirectory()
        try FileManager.default.createDirectory(atPath: place.path + "/a/b", withIntermediateDirectories: true)
        _ = try place.file("a/b/file", [1])
        var tree = try LocalTree(FileDescriptor.open(place.path, [.readOnly, .directory]))
        var found: Bool?
        while let item = tree.next() {
            if case .directory("a") = item { tree.isFolderMissing = true }
            if case .file(let file) = item { found = file.isFolderMissing }
        }
        #expect(found == true && !tree.isFolderMissing)
        let total = LocalTree.total(of: try FileDescriptor.open(place.path, [.readOnly, .directory])) { true }
        #expect(total == GroupProgress.Total(count: 1, bytes: 1))
    }
}

@Suite("Folders: the table of files that were sent")
struct SentTableTests {
    private let place: TemporaryDirectory
    private let states: PrivateDirectory
    private let identity = TransferIdentity(kind: .put, path: "/d", method: "PUT", url: "http://h/files/")

    init() throws {
        place = try TemporaryDirectory()
        states = try PrivateDirectory.create(FilePath(place.path + "/states"))
    }

    private func table() -> SentTable { SentTable(of: identity, in: states) }

    private func file(_ path: String, size: Int64 = 1) throws -> LocalTree.File {
        let directory = try FileDescriptor.open(place.path, [.readOnly, .directory])
        var status = try directory.status()
        status.size = size
        return LocalTree.File(
            path: FilePath(path), name: FilePath(path), directory: directory, status: status, isFolderMissing: false)
    }

    @Test("Files are found again by another process, as long as they are unchanged and the server has the same version")
    func records() throws {
        let first = table()
        let (a, b) = (try file("a"), try file("b"))
        #expect(first.record(of: a) == nil)
        first.insert(a, entityTag: "\"1\"")
        first.insert(b, entityTag: nil)
        let second = table()
        let record = try #require(second.record(of: a))
        #expect(record.matches(entityTag: "\"1\"") && !record.matches(entityTag: "\"2\""))
        #expect(!record.matches(entityTag: nil))
        #expect(try #require(second.record(of: b)).matches(entityTag: "\"2\""))
        #expect(try second.record(of: file("a", size: 2)) == nil)
        second.insert(try file("a", size: 2), entityTag: "\"3\"")
        #expect(second.record(of: a) == nil)
        second.remove()
        #expect(table().record(of: b) == nil)
    }

    @Test("The table grows, and keeps all records")
    func growth() throws {
        let some = try file("x")
        func numbered(_ number: Int) -> LocalTree.File {
            LocalTree.File(
                path: FilePath("sub/\(number)"), name: "x", directory: some.directory, status: some.status,
                isFolderMissing: false
            )
        }
        let first = table()
        for number in 0..<40_000 { first.insert(numbered(number), entityTag: nil) }
        let second = table()
        #expect((0..<40_000).allSatisfy { second.record(of: numbered($0)) != nil })
        #expect(second.record(of: numbered(40_000)) == nil)
    }

    @Test("A damaged table is replaced by an empty one", arguments: [0, 5, 1 << 17])
    func damaged(size: Int) throws {
        let first = table()
        let a = try file("a")
        first.insert(a, entityTag: nil)
        try Data(count: size).write(to: URL(filePath: "\(place.path)/states/\(identity.name).sent"))
        let second = table()
        #expect(second.record(of: a) == nil)
        second.insert(a, entityTag: nil)
        #expect(second.record(of: a) != nil)
    }

    @Test("Commands for other URLs or directories have other tables")
    func scopes() throws {
        let first = table()
        let a = try file("a")
        first.insert(a, entityTag: nil)
        let other = TransferIdentity(kind: .put, path: "/d", method: "PUT", url: "http://h/other/")
        #expect(SentTable(of: other, in: states).record(of: a) == nil)
    }
}
