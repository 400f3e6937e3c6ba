/// The value of an Item or of a parameter (RFC 9651 §3.3).
///
/// A case can hold a value that the field format cannot express, such as an Integer of 16 digits; serializing it throws
/// ``SerializationFailure``. What the parser returns can always be serialized.
package enum BareItem: Hashable, Sendable {
    /// An Integer of at most 15 digits.
    case integer(Int)
    case decimal(Decimal)
    /// Printable ASCII, quotes and escapes removed.
    case string(String)
    case token(String)
    /// The decoded bytes.
    case byteSequence([UInt8])
    case boolean(Bool)
    /// Seconds from 1970-01-01T00:00:00Z, leap seconds not counted; negative before it.
    case date(Int)
    /// Any Unicode text, escapes decoded.
    case displayString(String)

    /// The largest magnitude of an Integer and of a Date (§3.3.1, §3.3.7).
    static let maximumInteger = 999_999_999_999_999
}
