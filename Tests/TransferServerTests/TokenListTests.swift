import HTTPSemantics
import TestSupport
import Testing

@testable import TransferServer

@Suite("Token files")
struct TokenListTests {
    private static let hash = String(repeating: "0f", count: 32)

    @Test("A line has a name, a token, scopes and prefixes")
    func lines() throws {
        let list = try TokenList(
            parsing: """
                # who may upload
                anna  secret-of-anna-0001
                ben\tsecret-of-ben-00001 read,create prefix=/files/a/ prefix=/files/b%20c   # two places

                anna sha256:\(Self.hash) write\r
                """)
        #expect(list.tokens.map(\.name) == ["anna", "ben", "anna"])
        #expect(list.tokens[0].scopes == [.read, .create, .write])
        #expect(list.tokens[0].prefixes.isEmpty)
        #expect(list.tokens[1].scopes == [.read, .create])
        #expect(
            list.tokens[1].prefixes == [
                .init(segments: ["files", "a"], isPathItselfIncluded: false),
                .init(segments: ["files", "b c"], isPathItselfIncluded: true),
            ])
        #expect(list.tokens[2].scopes == [.write])
        #expect(list.tokens[2].digest == [UInt8](repeating: 0x0F, count: 32))
        #expect(list.namesWithShortTokens.isEmpty)
    }

    @Test("docs/operating.md: the lines of the example are valid")
    func documented() throws {
        var text = try DocumentBlock.content(in: "docs/operating.md", containing: "# NAME  TOKEN")
        text = text.replacing("5d7f…(64 digits)", with: Self.hash).replacing("c2f4b1d0…(64 digits)", with: Self.hash)
        let list = try TokenList(parsing: text)
        #expect(list.tokens.map(\.name) == ["anna", "backup"])
        #expect(list.tokens.map(\.scopes) == [[.read, .create], [.read]])
        #expect(list.tokens[0].prefixes == [.init(segments: ["files", "inbox"], isPathItselfIncluded: false)])
    }

    @Test("A token can be given as its SHA-256")
    func hashed() throws {
        // printf %s abc | sha256sum
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        let plain = try TokenList(parsing: "a abc")
        let hashed = try TokenList(parsing: "a sha256:\(hash.uppercased())")
        #expect(plain.tokens == hashed.tokens)
        #expect(plain.namesWithShortTokens == ["a"])
        #expect(throws: TokenList.Malformed(line: 2, reason: "another line has the same token")) {
            try TokenList(parsing: "a abc\nb sha256:\(hash)")
        }
    }

    @Test(
        "A file with an unknown word is refused; the error contains the line number, but never the token",
        arguments: [
            "anna", "anna tok en:x", "an/na token", "anonymous token", "anna tökén", "anna to=ken", "anna ===",
            "anna sha256:abc", "anna sha256:\(String(repeating: "g", count: 64))", "anna token delete",
            "anna token read,",
            "anna token ,", "anna token read write", "anna token prefix=files/x/", "anna token prefix=files/x",
            "anna token prefix=/", "anna token prefix=/files/../x/", "anna token prefix=", "anna token prefix=/f/ read",
            "anna token Read", "anna token read prefix=/files/%2e%2e/",
        ])
    func malformed(line: String) throws {
        let error = #expect(throws: TokenList.Malformed.self) {
            try TokenList(parsing: "good secret-secret-secret\n\(line)\n")
        }
        #expect(error?.line == 2)
        #expect(error?.reason.isEmpty == false)
        #expect(error?.reason.contains("secret") == false)
        #expect(error?.reason.contains("token read") == false)
    }

    @Test("Any bytes are read as a list or as an error")
    func fuzz() {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        let pieces = [
            "a", "#", " ", "\t", "\n", "\r\n", "sha256:", Self.hash, "read", ",", "prefix=", "/", "%2", "é", "\0", "=",
        ]
        for _ in 0..<2000 {
            let text = (0..<Int.random(in: 0..<20, using: &generator))
                .map { _ in pieces[Int.random(in: 0..<pieces.count, using: &generator)] }.joined()
            if let list = try? TokenList(parsing: text) {
                #expect(list.tokens.allSatisfy { !$0.name.isEmpty && $0.digest.count == 32 }, "seed \(seed)")
            }
        }
    }
}
