/// Makes text of any origin safe for a terminal.
enum DisplayText {
    /// Returns the text in one line, without characters that a terminal would interpret.
    static func printable(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n", "\t": result.append(" ")
            default: result.append(isInterpretedByTerminal(scalar) ? "?" : scalar)
            }
        }
        return String(result)
    }

    private static func isInterpretedByTerminal(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate: true
        // Characters that change the direction of text could make a name look like another one.
        case .format: scalar != "\u{200D}" && scalar != "\u{200C}"
        default: false
        }
    }

    /// The number of columns that `text` occupies on a terminal.
    static func width(_ text: String) -> Int { text.reduce(0) { $0 + width($1) } }

    /// The number of columns of one character: 2 for wide characters of East Asia and for emoji, 0 for a mark without a
    /// base.
    static func width(_ character: Character) -> Int {
        var widest = 0
        for scalar in character.unicodeScalars {
            if scalar == "\u{FE0F}" { return 2 }
            widest = max(widest, width(scalar))
        }
        return widest
    }

    private static func width(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        let isWide = wide.contains { $0.contains(scalar.value) } || scalar.properties.isEmojiPresentation
        return isWide ? 2 : 1
    }

    /// Blocks of wide characters (Unicode Standard Annex 11).
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
    ]

    /// Shortens `text` to at most this number of columns. The middle is left out, because names differ at both ends.
    static func truncated(_ text: String, to columns: Int) -> String {
        guard width(text) > columns else { return text }
        guard columns > 1 else { return columns == 1 ? "…" : "" }
        let room = columns - 1
        let end = suffix(text, room / 2)
        return prefix(text, room - width(end)) + "…" + end
    }

    private static func prefix(_ text: String, _ columns: Int) -> String {
        var left = columns
        return String(
            text.prefix { character in
                left -= width(character)
                return left >= 0
            })
    }

    private static func suffix(_ text: String, _ columns: Int) -> String {
        String(prefix(String(text.reversed()), columns).reversed())
    }
}
