/// What a peer said, fit for a terminal and for a text file.
enum VisibleText {
    /// With escapes of C and Swift in place of what a terminal would obey, and of marks that change the direction of
    /// what follows. Line ends stay.
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
