/// The reason why a field value is not a structured field of the expected type (RFC 9651 §4.2).
///
/// Such a field must be ignored entirely.
package struct ParseFailure: Error, Hashable, Sendable {
    /// The kind of syntax error.
    package enum Reason: String, Hashable, Sendable {
        /// A byte above 0x7F; structured fields are ASCII.
        case nonASCII
        /// The value ended before it was complete.
        case unexpectedEnd
        /// Something follows a complete value.
        case trailingCharacters
        /// A List or Dictionary ends in a comma.
        case trailingComma
        /// Two members are not separated by a comma.
        case missingComma
        /// No key starts here (§3.1.2).
        case invalidKey
        /// No Item or Inner List starts here.
        case invalidItem
        /// The items of an Inner List are not separated by spaces (§3.1.1).
        case invalidInnerList
        /// A sign without digits, or a Decimal that does not have one to three fractional digits (§3.3.1, §3.3.2).
        case invalidNumber
        /// An Integer of more than 15 digits, or a Decimal with more than 12 before the point.
        case numberTooLong
        /// A character or escape that a String does not allow (§3.3.3).
        case invalidString
        /// Not base64 (§3.3.5).
        case invalidByteSequence
        /// Neither `?0` nor `?1` (§3.3.6).
        case invalidBoolean
        /// A Date with a fraction (§3.3.7).
        case invalidDate
        /// A bad escape in a Display String, or escapes that are not UTF-8 (§3.3.8).
        case invalidDisplayString
    }

    /// The position of the error, in bytes from the start of the combined field value.
    package var offset: Int
    package var reason: Reason

    package init(offset: Int, reason: Reason) {
        self.offset = offset
        self.reason = reason
    }
}

extension ParseFailure: CustomStringConvertible {
    package var description: String { "\(reason.rawValue) at byte \(offset)" }
}
