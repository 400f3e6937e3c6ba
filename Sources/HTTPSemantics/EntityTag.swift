/// An entity tag (RFC 9110 section 8.8.3).
public struct EntityTag: Sendable {
    /// The text between the quotes. It has no escapes, and is compared byte by byte.
    public let opaque: String
    /// Whether the tag has the prefix `W/`.
    public let isWeak: Bool

    /// Creates a tag. Returns `nil` if `opaque` contains a quote, white space or a control character.
    public init?(opaque: String, isWeak: Bool = false) {
        guard opaque.withBytes({ $0.allSatisfy(\.isEntityTagCharacter) }) else { return nil }
        self.opaque = opaque
        self.isWeak = isWeak
    }

    /// Parses exactly one entity tag: `"opaque"` or `W/"opaque"`, where W is upper-case.
    public init?(parsing value: String) {
        var scanner = FieldValueScanner(value.trimmingOptionalWhitespace)
        guard let tag = EntityTag(&scanner), scanner.isAtEnd else { return nil }
        self = tag
    }

    init?(_ scanner: inout FieldValueScanner) {
        isWeak = scanner.consume(literal: "W/")
        guard scanner.consume("\"") else { return nil }
        opaque = String(decoding: scanner.run(where: \.isEntityTagCharacter), as: UTF8.self)
        guard scanner.consume("\"") else { return nil }
    }

    /// The tag as it is written in the ETag field.
    public var serialized: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }

    /// Strong comparison (RFC 9110 section 8.8.3.2): neither is weak and the opaque parts are the same.
    public func strongMatches(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque.equalsBytewise(other.opaque)
    }

    /// Weak comparison: the opaque parts are the same.
    public func weakMatches(_ other: EntityTag) -> Bool {
        opaque.equalsBytewise(other.opaque)
    }
}

extension EntityTag: Hashable {
    /// Whether both values are identical. This is not a comparison of validators: a weak tag is equal to itself.
    public static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.isWeak == right.isWeak && left.opaque.equalsBytewise(right.opaque)
    }

    /// Hashes the value consistently with `==`.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(isWeak)
        for byte in opaque.utf8 { hasher.combine(byte) }
    }
}

extension UInt8 {
    /// `etagc`: VCHAR without the quote, and obs-text.
    fileprivate var isEntityTagCharacter: Bool {
        self == UInt8(ascii: "!") || (0x23...0x7E).contains(self) || self >= 0x80
    }
}
