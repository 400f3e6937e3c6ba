import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite("File paths")
struct FilePathTests {
    private static let latin = FilePath("/a/gr".utf8 + [0xF6, 0xDF] + "er".utf8)

    @Test("Paths are equal if their bytes are equal")
    func equality() {
        #expect(FilePath("\u{E9}") != FilePath("e\u{301}"))
        #expect(Set<FilePath>(["\u{E9}", "e\u{301}", FilePath([0xE9]), FilePath([0xEF, 0xBF, 0xBD])]).count == 4)
        #expect(FilePath([0xE9]).text == nil && FilePath([0xE9]).repairedText == "\u{FFFD}")
    }

    @Test(
        "A slash separates components, even if a combining character follows",
        arguments: [
            ("/a/b", "b", "/a"), ("/a/\u{301}b", "\u{301}b", "/a"), ("\u{301}b", "\u{301}b", "."),
            ("/\u{301}b", "\u{301}b", "/"), ("/a/\r\n", "\r\n", "/a"), ("/a/b/", "", "/a/b"), ("/", "", "/"),
        ] as [(FilePath, FilePath, FilePath)])
    func components(path: FilePath, last: FilePath, directory: FilePath) {
        #expect(path.lastComponent == last && path.directory == directory)
        if !last.isEmpty, path != last { #expect(directory.appending(last) == path) }
    }

    @Test("Trailing slashes are removed, except the slash of the root")
    func slashes() {
        #expect(FilePath("/a//").withoutTrailingSlashes == "/a" && FilePath("//").withoutTrailingSlashes == "/")
        #expect(FilePath("/\u{301}/").withoutTrailingSlashes == "/\u{301}")
        #expect(FilePath("/a/\u{301}b").ancestry == ["/a", "/a/\u{301}b"])
    }

    @Test("The description is one line without control characters, and differs for different paths")
    func description() {
        #expect("\(Self.latin)" == #"/a/gr\xF6\xDFer"#)
        #expect("\(FilePath("a\n\u{1B}[2J\u{85}é"))" == #"a\x0A\x1B[2J\xC2\x85é"#)
        #expect(FilePath([0xF0, 0x9F, 0x98, 0x61]).description == #"\xF0\x9F\x98a"#)
        #expect(Self.latin.escaped { _ in "?" } == "/a/gr??er")
    }

    @Test("A path in JSON keeps all bytes: UTF-8 as a string, other bytes as an object")
    func json() throws {
        for path in [Self.latin, "/a/e\u{301}", "/a/\u{E9}", "/a/\u{301}", "a\n\u{1B}\"\\", ""] {
            let data = try JSONEncoder().encode([path])
            #expect(try JSONDecoder().decode([FilePath].self, from: data).map(\.bytes) == [path.bytes])
            #expect((try? JSONDecoder().decode([String].self, from: data)) == path.text.map { [$0] })
        }
    }

    @Test("System calls receive the unchanged bytes of a path")
    func system() throws {
        let temporary = try TemporaryDirectory()
        let base = FilePath(temporary.path)
        let names: [FilePath] = [FilePath([0x61, 0xF6]), "e\u{301}", "\u{E9}", "\u{301}x", "a\nb"]
        for name in names { _ = try FileDescriptor.open(base.appending(name), [.writeOnly, .create, .exclusive]) }
        let directory = try FileDescriptor.open(base, [.readOnly, .directory])
        for name in names {
            #expect(try base.appending(name).resolved().lastComponent == name)
            #expect(try directory.status(at: name).isRegular)
            try directory.rename(from: name, to: directory, as: name + ".new")
            try directory.unlink(at: name + ".new")
        }
        #expect(try directory.entryNames() == [])
    }
}
