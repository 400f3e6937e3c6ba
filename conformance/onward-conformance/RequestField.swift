import CommandLineInterface

/// A field that options add to requests.
enum RequestField {
    /// Reads `Name: value`.
    static func parse(_ text: String) throws(OptionError) -> (String, String) {
        guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
            throw OptionError("“\(text)” is no field of the form 'Name: value'")
        }
        return (String(text[..<colon]), String(text[text.index(after: colon)...].drop { $0 == " " }))
    }
}
