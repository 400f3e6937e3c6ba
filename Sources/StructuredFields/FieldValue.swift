/// The type of an entire field: ``Item``, ``List`` or ``OrderedDictionary`` (RFC 9651 §3).
package protocol FieldValue: Hashable, Sendable {
    /// Parses the combined value of a field, without its name.
    init(parsing bytes: some Collection<UInt8>) throws(ParseFailure)

    /// The canonical value (RFC 9651 §4.1).
    func serialized() throws(SerializationFailure) -> String
}

extension FieldValue {
    /// Parses the combined value of a field, without its name.
    package init(parsing value: String) throws(ParseFailure) {
        try self.init(parsing: value.utf8)
    }

    /// Parses the field lines of one field, in the order received, combined with a comma (RFC 9651 §4.2).
    ///
    /// Without lines the value is empty: a List or Dictionary then has no members, and an Item throws an error.
    package init(parsing lines: [String]) throws(ParseFailure) {
        try self.init(parsing: lines.joined(separator: ", "))
    }
}
