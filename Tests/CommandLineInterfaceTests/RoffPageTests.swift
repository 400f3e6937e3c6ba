import CommandLineInterface
import Testing

@Suite("Manual pages")
struct RoffPageTests {
    private static let macros: Set<Substring> = [
        "TH", "SH", "SS", "PP", "TP", "B", "BR", "EX", "EE", "nh", "ad", "br",
    ]

    @Test("The pages of a program are one for it and one for each command, with what belongs there")
    func files() throws {
        #expect(
            Sample.program.files.map(\.path) == [
                "man/man1/sam-ple.1", "man/man1/sam-ple-take.1", "man/man1/sam-ple-go.1", "man/man1/sam-ple-stop.1",
                "bash-completion/completions/sam-ple", "zsh/site-functions/_sam-ple",
                "fish/vendor_completions.d/sam-ple.fish",
            ])
        let page = try #require(Sample.program.manual(["man/man1/sam-ple-take.1"]))
        #expect(page.hasPrefix(".TH SAM\\-PLE\\-TAKE 1 2026-01-02 \"sam-ple 1.2\" \"User Commands\"\n"))
        #expect(page.contains("\\fBsam\\-ple take\\fR [\\fIOPTIONS\\fR] \\fIFILE\\fR...\n"))
        #expect(page.contains(".TP\n\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fIFILE\\fR\nhelp\n"))
        #expect(page.contains(".SS \"Other\"\n"))
        #expect(page.contains(".BR sam\\-ple (1) ,\n.BR sam\\-ple\\-go (1) ,\n.BR sam\\-ple\\-stop (1)\n"))
        let overview = try #require(Sample.program.manual(["man/man1/sam-ple.1"]))
        #expect(overview.contains(".EX\nsam\\-ple take x\n\\&.dot\n.EE\n"))
        #expect(Sample.program.manual(["man/man1/other.1"]) == nil)
        #expect(Sample.program.manual([])?.split(separator: "\n").count == 7)
    }

    @Test("Whatever a text says, it is text: no request, no escape", arguments: 0..<200)
    func hostile(seed: Int) throws {
        var generator = Sequence(state: UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 &+ 1)
        let alphabet = Array(".'\\-\"`^~…a B\n")
        var text = String((0..<40).map { _ in alphabet[Int(generator.next() % UInt64(alphabet.count))] })
        // Paragraphs begin and end with text, and have one empty line between them.
        text = text.split(separator: "\n").joined(separator: "\n")
        let page = try #require(Sample.program(description: text).manual(["man/man1/sam-ple-take.1"]))
        for line in page.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
            #expect(Self.macros.contains(line.dropFirst().prefix { $0 != " " }), "seed \(seed): \(line)")
        }
        let start = try #require(page.firstRange(of: ".SH \"DESCRIPTION\"\n")).upperBound
        let end = try #require(page.firstRange(of: ".SH \"OPTIONS\"\n")).lowerBound
        #expect(Self.plain(page[start..<end]) == text.replacing("…", with: "...") + "\n", "seed \(seed)")
    }

    /// What a formatter makes of the escapes that are written.
    private static func plain(_ text: Substring) -> String {
        let escapes = [
            ("\\(aq", "'"), ("\\(ga", "`"), ("\\(ha", "^"), ("\\(ti", "~"), ("\\(dq", "\""), ("\\-", "-"), ("\\&", ""),
        ]
        var result = ""
        var rest = text
        while let character = rest.first {
            if let (escape, meaning) = escapes.first(where: { rest.hasPrefix($0.0) }) {
                result += meaning
                rest = rest.dropFirst(escape.count)
            } else if rest.hasPrefix("\\e") {
                result += "\\"
                rest = rest.dropFirst(2)
            } else {
                result.append(character)
                rest = rest.dropFirst()
            }
        }
        return result
    }

    private struct Sequence {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
    }
}
