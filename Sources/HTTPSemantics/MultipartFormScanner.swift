/// Finds the parts of `multipart/form-data` content (RFC 7578), which arrives in pieces of any size.
///
/// Content of parts is not kept, only its position. The memory is limited by the number of parts and the size of their
/// heads. A line that begins like a delimiter but continues with something else belongs to the content.
package struct MultipartFormScanner: Sendable {
    /// A part and the position of its content.
    package struct Part: Sendable, Hashable {
        package let head: FormPartHead
        /// The positions of the content, counted from the first byte of the form.
        package let content: Range<Int64>

        package init(head: FormPartHead, content: Range<Int64>) {
            self.head = head
            self.content = content
        }
    }

    private enum State {
        /// The preamble or the content of a part. `matched` is the number of bytes of the delimiter that have matched.
        case content(matched: Int)
        /// The line after a delimiter.
        case line(dashes: Int, hasPadding: Bool, hasReturn: Bool)
        case head
        case epilogue
    }

    /// CR LF, two hyphens, and the boundary.
    private let delimiter: [UInt8]
    private let maxParts: Int
    private let maxHeadSize: Int
    private var state = State.content(matched: 2)
    /// The position of the next byte.
    private var position: Int64 = 0
    /// The position of the first byte of the delimiter that matches. It is -2 for a delimiter at the beginning of the form,
    /// which is scanned as if a line end preceded the form.
    private var delimiterStart: Int64 = -2
    private var head: [UInt8] = []
    /// The part whose content is being scanned.
    private var openPart: (head: FormPartHead, start: Int64)?
    private var parts: [Part] = []

    /// - Parameters:
    ///   - boundary: the boundary of the form, see ``boundary(ofContentType:)``.
    ///   - maxParts: the maximum number of parts.
    ///   - maxHeadSize: the maximum size of the fields of one part in bytes.
    package init(boundary: String, maxParts: Int, maxHeadSize: Int) {
        delimiter = Array("\r\n--\(boundary)".utf8)
        self.maxParts = maxParts
        self.maxHeadSize = maxHeadSize
    }

    /// Returns the boundary that a Content-Type value declares; `nil` if it is not a form, or if its boundary is
    /// missing, repeated or invalid (RFC 2046 section 5.1.1).
    package static func boundary(ofContentType value: String) -> String? {
        guard let type = MediaType(parsing: value), type.matches("multipart/form-data") else { return nil }
        let boundaries = type.parameters.filter { $0.name == "boundary" }.map(\.value)
        guard boundaries.count == 1, let boundary = boundaries.first, (1...70).contains(boundary.utf8.count),
            boundary.utf8.last != UInt8(ascii: " "), boundary.utf8.allSatisfy(isBoundaryCharacter)
        else { return nil }
        return boundary
    }

    private static func isBoundaryCharacter(_ byte: UInt8) -> Bool {
        byte.isDigit || byte.isLetter || "'()+_,-./:=? ".utf8.contains(byte)
    }

    /// Scans the next bytes.
    package mutating func scan(_ bytes: UnsafeRawBufferPointer) throws(FormError) {
        var index = 0
        while index < bytes.count {
            if case .epilogue = state { break }
            if case .content(matched: 0) = state {
                // Only a carriage return can begin a delimiter.
                let start = index
                while index < bytes.count, bytes[index] != UInt8(ascii: "\r") { index += 1 }
                position += Int64(index - start)
                if index == bytes.count { return }
            }
            try scan(bytes[index])
            index += 1
            position += 1
        }
    }

    private mutating func scan(_ byte: UInt8) throws(FormError) {
        switch state {
        case .content(let matched): match(byte, after: matched)
        case .line(let dashes, let hasPadding, let hasReturn):
            try continueLine(byte, dashes: dashes, hasPadding: hasPadding, hasReturn: hasReturn)
        case .head: try continueHead(byte)
        case .epilogue: break
        }
    }

    private mutating func match(_ byte: UInt8, after matched: Int) {
        if byte == delimiter[matched] {
            if matched == 0 { delimiterStart = position }
            state =
                matched + 1 == delimiter.count
                ? .line(dashes: 0, hasPadding: false, hasReturn: false) : .content(matched: matched + 1)
        } else if byte == UInt8(ascii: "\r") {
            // The delimiter has a carriage return only at its start.
            delimiterStart = position
            state = .content(matched: 1)
        } else {
            state = .content(matched: 0)
        }
    }

    /// Scans the line after a delimiter: two hyphens if the delimiter is the last one, then any number of spaces and tabs.
    private mutating func continueLine(
        _ byte: UInt8, dashes: Int, hasPadding: Bool, hasReturn: Bool
    ) throws(FormError) {
        switch byte {
        case UInt8(ascii: "\n") where hasReturn: try endLine(isLast: dashes == 2)
        case UInt8(ascii: "\r") where !hasReturn && dashes != 1:
            state = .line(dashes: dashes, hasPadding: hasPadding, hasReturn: true)
        case UInt8(ascii: "-") where !hasReturn && !hasPadding && dashes < 2:
            state = .line(dashes: dashes + 1, hasPadding: false, hasReturn: false)
        case _ where byte.isOptionalWhitespace && !hasReturn && dashes != 1:
            state = .line(dashes: dashes, hasPadding: true, hasReturn: false)
        default: match(byte, after: 0)
        }
    }

    private mutating func endLine(isLast: Bool) throws(FormError) {
        endPart()
        if isLast {
            state = .epilogue
            return
        }
        guard parts.count < maxParts else { throw .tooManyParts(limit: maxParts) }
        head = []
        state = .head
    }

    private mutating func endPart() {
        // If a part has no content, the CR LF at the end of its head can also be the CR LF at the beginning of the
        // delimiter. The delimiter then begins before `start`.
        guard let (head, start) = openPart else { return }
        parts.append(Part(head: head, content: start..<max(start, delimiterStart)))
        openPart = nil
    }

    private mutating func continueHead(_ byte: UInt8) throws(FormError) {
        guard head.count < maxHeadSize else { throw .headTooLarge(limit: maxHeadSize) }
        guard (byte == UInt8(ascii: "\n")) == (head.last == UInt8(ascii: "\r")) else {
            throw .malformed("the fields of a part have a bare CR or LF")
        }
        head.append(byte)
        guard byte == UInt8(ascii: "\n"), head.count == 2 || head.suffix(4).elementsEqual("\r\n\r\n".utf8) else {
            return
        }
        openPart = (try FormPartHead(parsing: head), position + 1)
        head = []
        delimiterStart = position - 1
        state = .content(matched: 2)
    }

    /// Returns all parts. Call it after the last byte of the form was scanned.
    package mutating func finish() throws(FormError) -> [Part] {
        switch state {
        case .epilogue: break
        case .line(dashes: 2, _, hasReturn: false): endPart()
        default: throw .malformed("the last delimiter is missing")
        }
        return parts
    }
}

/// The reason why a form cannot be used.
package enum FormError: Error, Sendable, Hashable {
    /// The text continues the sentence "The form is malformed: …".
    case malformed(String)
    case tooManyParts(limit: Int)
    case headTooLarge(limit: Int)
}

/// The fields of a part of a form.
package struct FormPartHead: Sendable, Hashable {
    /// The name of the form field.
    package let name: String
    /// The file name as the client sent it, which is unchecked input; `nil` if the part is not a file.
    package let filename: String?
    package let fields: Fields

    package init(name: String, filename: String? = nil, fields: Fields) {
        self.name = name
        self.filename = filename
        self.fields = fields
    }

    /// - Parameter head: the lines with their ends, and an empty line.
    init(parsing head: [UInt8]) throws(FormError) {
        var fields = Fields()
        for line in head.split(separator: UInt8(ascii: "\n")) {
            let line = line.dropLast()
            if line.isEmpty { continue }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
                let name = String(validating: line[..<colon], as: UTF8.self), Fields.isValidName(name),
                let text = String(validating: line[(colon + 1)...], as: UTF8.self)
            else { throw .malformed("a line in the head of a part is not a field in UTF-8") }
            let value = text.trimmingOptionalWhitespace
            guard Fields.isValidValue(value) else { throw .malformed("a field of a part has a control character") }
            fields.append(name, value)
        }
        let dispositions = fields.values("Content-Disposition")
        guard dispositions.count == 1, let disposition = FormDisposition(parsing: dispositions[0]) else {
            throw .malformed("a part needs exactly one Content-Disposition, with the type form-data and a name")
        }
        // Forms have no encodings (RFC 7578 section 4.7), and encoded content would be stored without decoding.
        let codings = fields.values("Content-Transfer-Encoding").map(\.asciiLowercased)
        guard codings.allSatisfy({ ["binary", "8bit", "7bit"].contains($0) }) else {
            throw .malformed("a part has a Content-Transfer-Encoding other than 7bit, 8bit or binary")
        }
        self.init(name: disposition.name, filename: disposition.filename, fields: fields)
    }
}

/// The Content-Disposition of a part of a form, as browsers and curl write it.
private struct FormDisposition {
    let name: String
    let filename: String?

    init?(parsing value: String) {
        var scanner = FieldValueScanner(value)
        guard let type = scanner.token(), type.equalsIgnoringASCIICase("form-data") else { return nil }
        var parameters: [String: String] = [:]
        while true {
            scanner.skipOptionalWhitespace()
            if scanner.isAtEnd { break }
            guard scanner.consume(";") else { return nil }
            scanner.skipOptionalWhitespace()
            if scanner.isAtEnd { break }
            guard let parameter = scanner.token()?.asciiLowercased, scanner.consume("="),
                let value = scanner.next == UInt8(ascii: "\"") ? Self.quotedText(&scanner) : scanner.token(),
                parameters.updateValue(value, forKey: parameter) == nil
            else { return nil }
        }
        guard let name = parameters["name"] else { return nil }
        self.name = Self.decoded(name)
        filename = parameters["filename"].map(Self.decoded)
    }

    /// The content of a quoted string. curl escapes quotes and backslashes with a backslash, but browsers do not escape
    /// backslashes. So a backslash before any other character is a part of the content, as in `C:\dir`, and a quote at
    /// the end of the field is never escaped.
    private static func quotedText(_ scanner: inout FieldValueScanner) -> String? {
        guard scanner.consume("\"") else { return nil }
        var content: [UInt8] = []
        while let byte = scanner.next {
            _ = scanner.consume(byte)
            if byte == UInt8(ascii: "\"") { return String(decoding: content, as: UTF8.self) }
            content.append(byte)
            guard byte == UInt8(ascii: "\\"), let next = scanner.next,
                next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\")
            else { continue }
            _ = scanner.consume(next)
            if next == UInt8(ascii: "\"") && scanner.isAtEnd { return String(decoding: content, as: UTF8.self) }
            content[content.count - 1] = next
        }
        return nil
    }

    private static let encodedCharacters = [
        "22": UInt8(ascii: "\""), "0d": UInt8(ascii: "\r"), "0a": UInt8(ascii: "\n"),
    ]

    /// Decodes the three characters that browsers encode (the HTML standard, "multipart form data").
    private static func decoded(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        var bytes: [UInt8] = []
        var remaining = Array(text.utf8)[...]
        while let byte = remaining.popFirst() {
            if byte == UInt8(ascii: "%"),
                let character = encodedCharacters[String(decoding: remaining.prefix(2), as: UTF8.self).asciiLowercased]
            {
                bytes.append(character)
                remaining.removeFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
