/// The reason why a value cannot be serialized as a structured field (RFC 9651 §4.1).
package struct SerializationFailure: Error, Hashable, Sendable {
    /// The kind of value that cannot be serialized.
    package enum Reason: String, Hashable, Sendable {
        /// An Integer outside ±999,999,999,999,999 (§4.1.4).
        case integerOutOfRange
        /// A Date outside ±999,999,999,999,999 seconds (§4.1.10).
        case dateOutOfRange
        /// A String with a character outside 0x20–0x7E (§4.1.6).
        case invalidString
        /// A Token that is empty or has a character its grammar does not allow (§4.1.7).
        case invalidToken
        /// A key that is empty or has a character its grammar does not allow (§4.1.1.3).
        case invalidKey
    }

    package var reason: Reason

    package init(reason: Reason) {
        self.reason = reason
    }
}

extension SerializationFailure: CustomStringConvertible {
    package var description: String { reason.rawValue }
}
