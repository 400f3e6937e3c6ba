import CommandLineInterface

/// The parser of options that add a field to requests.
enum RequestField {
    /// Reads `Name: value`.
    static func parse(_ text: String) throws(OptionError) -> (String, String) {
        guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
            throw OptionError("“\(text)” is not a field of the form 'Name: value'")
        }
        return (String(text[..<colon]), String(text[text.index(after: colon)...].drop { $0 == " " }))
    }
}
