/// The header or trailer section of one message: its field lines in their order. Names are compared without regard to
/// case, and lines of the same name stay separate (RFC 9110 section 5).
///
/// Lines are stored unchanged, valid or not, so that a request can be verified as it was received. Check
/// ``firstInvalid`` before you send a section.
///
/// A value that was received is text in UTF-8. Each byte of it that is not UTF-8, such as a letter in ISO-8859-1, is a
/// scalar from U+10FF80 to U+10FFFF: 0xE9 is U+10FFE9. The server sends such a scalar as this byte.
public struct Fields: Sendable, Hashable {
    /// One field line.
    public struct Field: Sendable, Hashable {
        /// The name as it was given. Its case has no meaning.
        public let name: String
        /// The value of this line, as it was given.
        public let value: String

        /// Creates a line without a check of the name and the value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        /// Whether the names are equal except for ASCII case, and the values have the same bytes.
        public static func == (left: Field, right: Field) -> Bool {
            left.name.equalsIgnoringASCIICase(right.name) && left.value.equalsBytewise(right.value)
        }

        /// Hashes the line consistently with `==`.
        public func hash(into hasher: inout Hasher) {
            for byte in name.utf8 { hasher.combine(byte.asciiLowercased) }
            hasher.combine(UInt8(0))
            for byte in value.utf8 { hasher.combine(byte) }
        }
    }

    /// The number of lines for which memory is allocated at first.
    private static let usualCount = 12

    private var lines: [Field] = []

    /// An empty section.
    public init() {}

    /// A section of the given (name, value) lines, in this order.
    public init(_ lines: [(String, String)]) {
        self.lines = lines.map { Field(name: $0.0, value: $0.1) }
    }

    /// A section of these lines, in this order.
    package init(lines: [Field]) { self.lines = lines }

    /// Allocates memory for `count` lines, so that ``append(_:_:)`` does not have to move the lines repeatedly.
    package mutating func reserveCapacity(_ count: Int) { lines.reserveCapacity(count) }

    /// Adds a line at the end.
    public mutating func append(_ name: String, _ value: String) {
        // Several steps add fields to a response. Enough memory is allocated once, not in each step.
        if lines.count == lines.capacity { lines.reserveCapacity(Swift.max(Self.usualCount, 2 * lines.count)) }
        lines.append(Field(name: name, value: value))
    }

    /// Replaces all lines of this name by one, at the position of the first of them, or at the end if there was none.
    public mutating func set(_ name: String, _ value: String) {
        guard let first = lines.firstIndex(where: { $0.name.equalsIgnoringASCIICase(name) }) else {
            return append(name, value)
        }
        lines[first] = Field(name: name, value: value)
        let remaining = lines[(first + 1)...]
        guard remaining.contains(where: { $0.name.equalsIgnoringASCIICase(name) }) else { return }
        lines.replaceSubrange(
            (first + 1)..., with: remaining.filter { !$0.name.equalsIgnoringASCIICase(name) })
    }

    /// Removes all lines of this name.
    public mutating func remove(_ name: String) {
        lines.removeAll { $0.name.equalsIgnoringASCIICase(name) }
    }

    /// The values of all lines of this name in order, without white space at their ends; empty when there are none.
    public func values(_ name: String) -> [String] {
        var result: [String] = []
        for line in lines where line.name.equalsIgnoringASCIICase(name) {
            result.append(line.value.trimmingOptionalWhitespace)
        }
        return result
    }

    /// Whether there is at least one line of this name.
    public func contains(_ name: String) -> Bool {
        lines.contains { $0.name.equalsIgnoringASCIICase(name) }
    }

    /// The combined field value (RFC 9110 section 5.2): all lines of this name joined with ", "; `nil` when there are
    /// none.
    public subscript(name: String) -> String? {
        var combined: String?
        for line in lines where line.name.equalsIgnoringASCIICase(name) {
            let value = line.value.trimmingOptionalWhitespace
            combined = combined.map { $0 + ", " + value } ?? value
        }
        return combined
    }

    /// The options in `Connection` (RFC 9110 section 7.6.1).
    package var connectionOptions: [String] {
        values("Connection").flatMap { value in
            // The bytes are split, because a separator and a combining mark after it are one `Character`.
            value.utf8.split { ", \t".utf8.contains($0) }.map { String(Substring($0)) }
        }
    }

    /// Whether `Connection` has an option. Case does not matter.
    package func hasConnectionOption(_ name: String) -> Bool {
        connectionOptions.contains { $0.equalsIgnoringASCIICase(name) }
    }

    /// The number of lines.
    public var count: Int { lines.count }

    /// Whether there is no line at all.
    public var isEmpty: Bool { lines.isEmpty }

    /// The first line whose name is not a token or whose value could split or corrupt a message; `nil` if all lines can
    /// be sent.
    public var firstInvalid: Field? {
        lines.first { !Fields.isValidName($0.name) || !Fields.isValidValue($0.value) }
    }

    /// Whether `name` is a field name: a non-empty token (RFC 9110 section 5.1).
    public static func isValidName(_ name: String) -> Bool {
        name.isToken
    }

    /// Whether `value` is valid as a field value (RFC 9110 section 5.5): it has no control character, such as CR, LF or
    /// NUL, except HTAB.
    ///
    /// White space at the ends is allowed here; it is not part of the value.
    public static func isValidValue(_ value: String) -> Bool {
        value.withBytes { isValidValue(UnsafeRawBufferPointer($0)) }
    }

    /// Whether these bytes are valid as a field value, as ``isValidValue(_:)`` for a string.
    package static func isValidValue(_ value: UnsafeRawBufferPointer) -> Bool {
        // This is ``isFieldValueCharacter`` for all bytes, without branches, so that the compiler can vectorize the loop.
        var invalid: UInt8 = 0
        for byte in value {
            invalid |= (byte < 0x20 ? 1 : 0) & (byte != UInt8(ascii: "\t") ? 1 : 0) | (byte == 0x7F ? 1 : 0)
        }
        return invalid == 0
    }
}

extension Fields: Sequence {
    /// Iterates over the lines in order.
    public func makeIterator() -> [Field].Iterator {
        lines.makeIterator()
    }

    /// The number of lines.
    public var underestimatedCount: Int { lines.count }
}

extension Fields: ExpressibleByDictionaryLiteral {
    /// A section of these lines in order. A name may occur several times and then has several lines.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements)
    }
}

/// The bytes of field values as text.
///
/// A field value can contain every byte from 0x80 on (obs-text, RFC 9110 section 5.5), often in ISO-8859-1, and a server
/// that forwards a value must not change it. So values are converted at two places only, without loss: when a head is
/// parsed, and when a head is written. Valid UTF-8 is the text that it encodes. Every other byte becomes one scalar of
/// the range U+10FF80…U+10FFFF, in which no characters are assigned: the byte 0xE9 becomes U+10FFE9. UTF-8 that encodes
/// a scalar of this range is converted byte by byte, too, so that each scalar of the range has one meaning.
extension String {
    /// The text of bytes of a head, as described above. ASCII needs one pass over the bytes.
    package init(fieldBytes bytes: UnsafeRawBufferPointer) {
        if bytes.isASCII {
            self.init(decoding: bytes, as: UTF8.self)
        } else {
            self.init(FieldBytes.scalars(of: bytes))
        }
    }

    /// The bytes of the text in a head: the inverse of ``init(fieldBytes:)``.
    package var fieldBytes: [UInt8] {
        var bytes: [UInt8] = []
        appendFieldBytes(to: &bytes)
        return bytes
    }

    /// Appends ``fieldBytes``.
    package func appendFieldBytes(to bytes: inout [UInt8]) {
        guard hasOpaqueBytes else {
            bytes += utf8
            return
        }
        for scalar in unicodeScalars {
            if let byte = FieldBytes.byte(of: scalar) { bytes.append(byte) } else { bytes += UTF8.encode(scalar)! }
        }
    }

    /// Calls `body` with ``fieldBytes`` as a C string. The text must not contain NUL.
    package func withFieldCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
        guard hasOpaqueBytes else { return withCString(body) }
        return (fieldBytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { body($0.baseAddress!) }
    }

    /// The number of ``fieldBytes``.
    package var fieldByteCount: Int { hasOpaqueBytes ? fieldBytes.count : utf8.count }

    /// Whether some bytes of the text are not UTF-8.
    package var hasOpaqueBytes: Bool {
        withBytes { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            guard !bytes.isASCII else { return false }
            return bytes.indices.contains { FieldBytes.isReserved(bytes, at: $0) }
        }
    }

    /// The text for people and for formats that are Unicode: U+FFFD in place of bytes that are not UTF-8.
    package var repairedFieldText: String { hasOpaqueBytes ? String(decoding: fieldBytes, as: UTF8.self) : self }

    /// The text of a value that is decoded as ISO-8859-1 unless it is UTF-8, such as the name of a file.
    package var fieldTextInLatin1: String {
        guard hasOpaqueBytes else { return self }
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: fieldBytes.map { Unicode.Scalar($0) })
        return String(scalars)
    }
}

private enum FieldBytes {
    /// The scalar of a byte minus the byte.
    private static let base: UInt32 = 0x10FF00

    static func byte(of scalar: Unicode.Scalar) -> UInt8? {
        scalar.value >= base + 0x80 ? UInt8(truncatingIfNeeded: scalar.value) : nil
    }

    static func scalars(of bytes: UnsafeRawBufferPointer) -> String.UnicodeScalarView {
        var scalars = String.UnicodeScalarView()
        var position = 0
        while position < bytes.count {
            let length = isReserved(bytes, at: position) ? 0 : lengthOfScalar(bytes, at: position)
            if length == 0 {
                scalars.append(Unicode.Scalar(base + UInt32(bytes[position]))!)
                position += 1
            } else {
                let end = position + length
                let text = String(decoding: UnsafeRawBufferPointer(rebasing: bytes[position..<end]), as: UTF8.self)
                scalars.append(contentsOf: text.unicodeScalars)
                position = end
            }
        }
        return scalars
    }

    /// Whether a scalar of the reserved range is encoded at a position.
    static func isReserved(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Bool {
        bytes[position] == 0xF4 && position + 3 < bytes.count && bytes[position + 1] == 0x8F
            && bytes[position + 2] >= 0xBE && bytes[position + 2] <= 0xBF && 0x80...0xBF ~= bytes[position + 3]
    }

    /// The number of bytes of the well-formed scalar at a position (Unicode, table 3-7); 0 if there is none.
    private static func lengthOfScalar(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Int {
        let (length, second): (Int, ClosedRange<UInt8>)
        switch bytes[position] {
        case 0x00...0x7F: return 1
        case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: return 0
        }
        guard position + length <= bytes.count, second ~= bytes[position + 1] else { return 0 }
        return bytes[(position + 2)..<(position + length)].allSatisfy { 0x80...0xBF ~= $0 } ? length : 0
    }
}

extension UnsafeRawBufferPointer {
    /// Whether no byte has its highest bit set. The loop has no exit, so that the compiler can vectorize it.
    fileprivate var isASCII: Bool {
        var bits: UInt8 = 0
        for byte in self { bits |= byte }
        return bits < 0x80
    }
}
