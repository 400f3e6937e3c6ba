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

    /// The text of a value whose encoding is ISO-8859-1 unless it is UTF-8, as that of names of files.
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
        return bytes[(position + 2)..<max(position + 2, position + length)].allSatisfy { 0x80...0xBF ~= $0 }
            ? length : 0
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
