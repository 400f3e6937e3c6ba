import CommandLineInterface
import TestSupport
import Testing

@Suite("Manual pages")
struct RoffPageTests {
    private static let macros: Set<Substring> = [
        "TH", "SH", "SS", "PP", "TP", "B", "BR", "EX", "EE", "nh", "ad", "br",
    ]

    @Test("A program has one page for itself and one for each command")
    func files() throws {
        #expect(
            Sample.program.files.map(\.path) == [
                "man/man1/sam-ple.1", "man/man1/sam-ple-take.1", "man/man1/sam-ple-go.1", "man/man1/sam-ple-stop.1",
                "bash-completion/completions/sam-ple", "zsh/site-functions/_sam-ple",
                "fish/vendor_completions.d/sam-ple.fish",
            ])
        let page = try Sample.program.manual(["man/man1/sam-ple-take.1"])
        #expect(page.hasPrefix(".TH SAM\\-PLE\\-TAKE 1 2026-01-02 \"sam-ple 1.2\" \"User Commands\"\n"))
        #expect(page.contains("\\fBsam\\-ple take\\fR [\\fIOPTIONS\\fR] \\fIFILE\\fR...\n"))
        #expect(page.contains(".TP\n\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fIFILE\\fR\nhelp\n"))
        #expect(page.contains(".SS \"Other\"\n"))
        #expect(page.contains(".BR sam\\-ple (1) ,\n.BR sam\\-ple\\-go (1) ,\n.BR sam\\-ple\\-stop (1)\n"))
        let overview = try Sample.program.manual(["man/man1/sam-ple.1"])
        #expect(overview.contains(".EX\nsam\\-ple take x\n\\&.dot\n.EE\n"))
        #expect(throws: OptionError.self) { try Sample.program.manual(["man/man1/other.1"]) }
        #expect(try Sample.program.manual([]).split(separator: "\n").count == 7)
    }

    @Test(
        "Text never becomes a request or an escape of roff, whatever its characters are",
        arguments: 0..<200 as Range<UInt64>)
    func hostile(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array(".'\\-\"`^~…a B\n")
        var text = String((0..<40).map { _ in generator.pick(alphabet) })
        // Paragraphs begin and end with text, and have one empty line between them.
        text = text.split(separator: "\n").joined(separator: "\n")
        let page = try Sample.program(description: text).manual(["man/man1/sam-ple-take.1"])
        for line in page.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
            #expect(Self.macros.contains(line.dropFirst().prefix { $0 != " " }), "seed \(seed): \(line)")
        }
        let start = try #require(page.firstRange(of: ".SH \"DESCRIPTION\"\n")).upperBound
        let end = try #require(page.firstRange(of: ".SH \"OPTIONS\"\n")).lowerBound
        #expect(Self.plain(page[start..<end]) == text.replacing("…", with: "...") + "\n", "seed \(seed)")
    }

    /// The text as a formatter renders the written escapes.
    private static func plain(_ text: Substring) -> String {
        let escapes = [
            ("\\(aq", "'"), ("\\(ga", "`"), ("\\(ha", "^"), ("\\(ti", "~"), ("\\(dq", "\""), ("\\-", "-"), ("\\&", ""),
        ]
        var result = ""
        var remaining = text
        while let character = remaining.first {
            if let (escape, meaning) = escapes.first(where: { remaining.hasPrefix($0.0) }) {
                result += meaning
                remaining = remaining.dropFirst(escape.count)
            } else if remaining.hasPrefix("\\e") {
                result += "\\"
                remaining = remaining.dropFirst(2)
            } else {
                result.append(character)
                remaining = remaining.dropFirst()
            }
        }
        return result
    }
}
