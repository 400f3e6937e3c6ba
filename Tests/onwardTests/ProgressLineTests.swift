import Testing

@testable import onward

@Suite("Progress line")
struct ProgressLineTests {
    private func line(
        _ name: String = "big.bin", _ done: Int64 = 1_260_000_000, of total: Int64? = 3_000_000_000,
        _ rate: Double? = 11_200_000, note: String? = nil
    ) -> ProgressLine {
        ProgressLine(name: name, done: done, total: total, rate: rate, note: note)
    }

    @Test("A line of 80 columns shows percentage, bytes, rate and remaining time")
    func usual() {
        #expect(
            line().text(columns: 79) == "big.bin   42 %  1.26 GB of 3.00 GB  11.2 MB/s  2 min 36 s left")
    }

    @Test("A line of 200 columns also shows a bar")
    func wide() {
        let text = line().text(columns: 199)
        #expect(text.hasPrefix("big.bin  [#########################...................................]   42 %"))
        #expect(text.hasSuffix("2 min 36 s left"))
    }

    @Test("A line without a terminal has no bar, and a long name is not shortened")
    func plain() {
        #expect(line().plainText == "big.bin   42 %  1.26 GB of 3.00 GB  11.2 MB/s  2 min 36 s left")
        let name = String(repeating: "long-", count: 60)
        #expect(line(name).plainText.hasPrefix(name + "   42 %"))
    }

    @Test("In narrow terminals the parts are omitted in a fixed order")
    func narrow() {
        #expect(line().text(columns: 50) == "big.bin   42 %  1.26 GB of 3.00 GB  11.2 MB/s")
        #expect(line().text(columns: 40) == "big.bin   42 %  1.26 GB of 3.00 GB")
        #expect(line().text(columns: 20) == "big.bin   42 %")
        #expect(line().text(columns: 7) == " 42 %")
    }

    @Test("A name that is too long is shortened in the middle")
    func longName() {
        let text = line("a-rather-long-name-of-a-file-that-has-many-words.tar.gz").text(columns: 79)
        #expect(text.hasPrefix("a-rather-lon…"))
        #expect(text.contains("tar.gz   42 %"))
        #expect(DisplayText.width(text) <= 79)
    }

    @Test(
        "The line is never wider than the terminal, even with long names",
        arguments: Array(0...40) + Array(stride(from: 45, through: 250, by: 5)))
    func bounded(columns: Int) {
        let names = [
            "x", "big.bin", String(repeating: "long-", count: 60), String(repeating: "日本語", count: 40),
            "👩‍👩‍👧‍👦👍🏽e\u{301}.bin",
            String(repeating: "e\u{301}", count: 100),
        ]
        for name in names {
            for total in [nil, 0, 1, 5_000_000_000_000] as [Int64?] {
                for rate in [nil, 0, 0.4, 1e12] as [Double?] {
                    let text = line(name, 1, of: total, rate, note: columns % 2 == 0 ? "waiting" : nil)
                        .text(columns: columns)
                    #expect(DisplayText.width(text) <= columns, "\(text)")
                }
            }
        }
    }

    @Test("Without a total there is no percentage and no remaining time; without a rate both are shown as --")
    func unknown() {
        #expect(line(of: nil).text(columns: 79) == "big.bin  1.26 GB  11.2 MB/s")
        #expect(line(1_000, of: 10_000, nil).text(columns: 79) == "big.bin   10 %  1.00 kB of 10.0 kB  -- B/s  -- left")
        #expect(line(note: "waiting").text(columns: 79) == "big.bin   42 %  1.26 GB of 3.00 GB  waiting")
    }

    private func line(_ done: Int64, of total: Int64, _ rate: Double?) -> ProgressLine {
        ProgressLine(name: "big.bin", done: done, total: total, rate: rate, note: nil)
    }

    @Test("100 % is shown only if all bytes are transferred")
    func completeTransfer() {
        #expect(line(2_999_999_999, of: 3_000_000_000, 1).text(columns: 79).contains(" 99 %"))
        #expect(line(3_000_000_000, of: 3_000_000_000, 1).text(columns: 79).contains("100 %"))
        #expect(line(0, of: 0, nil).text(columns: 79).contains("100 %"))
    }
}

@Suite("Line of a terminal")
struct TerminalLineTests {
    @Test("A line replaces the previous line")
    func replacing() {
        var line = TerminalLine()
        #expect(line.replace(with: "one", columns: 80) == "one")
        #expect(line.replace(with: "two", columns: 80) == "\r\u{1B}[Jtwo")
        #expect(line.erase(columns: 80) == "\r\u{1B}[J")
        #expect(line.erase(columns: 80) == "")
    }

    @Test(
        "After the window became narrower, the line is erased from its first wrapped row on",
        arguments: [
            (199, 80, 2), (80, 80, 0), (81, 80, 1), (79, 80, 0), (79, 20, 3),
        ])
    func narrower(width: Int, columns: Int, rows: Int) {
        var line = TerminalLine()
        _ = line.replace(with: String(repeating: "x", count: width), columns: 200)
        #expect(line.erase(columns: columns) == "\r" + (rows > 0 ? "\u{1B}[\(rows)A" : "") + "\u{1B}[J")
    }
}
