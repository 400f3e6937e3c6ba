/// Makes text from a peer safe to print on a terminal and to write to a file.
enum VisibleText {
    /// Escapes control characters, and characters that change the direction of text, as in C and Swift. Keeps newlines.
    static func of(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control where scalar != "\n", .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
                let number = String(scalar.value, radix: 16)
                let escape = scalar.value < 0x100 ? "\\x" + (number.count < 2 ? "0" : "") + number : "\\u{\(number)}"
                result.append(contentsOf: escape.unicodeScalars)
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
