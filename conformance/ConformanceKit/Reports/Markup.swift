/// Escapes text for XML and HTML.
enum Markup {
    /// Escapes the characters that are markup. Replaces all control characters except tab and line feed, and the code
    /// points that end in FFFE or FFFF; XML 1.0 does not allow many of them.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            case "\t", "\n": result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value) || scalar.value & 0xFFFE == 0xFFFE:
                result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
