/// An element of an XML document of the storage.
///
/// The reader accepts the documents of services with the interface of S3: elements, attributes (which are ignored), text,
/// references to characters, CDATA sections and comments. It refuses everything else, such as document types.
struct StorageDocument: Hashable {
    private(set) var name: String
    /// The text directly in this element.
    private(set) var text = ""
    private(set) var children: [StorageDocument] = []

    private static let maxDepth = 16

    /// - Returns: the root element; `nil` if the document is not well-formed, or has something that is refused.
    init?(_ bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var reader = Reader(text)
        // A byte order mark.
        _ = reader.consume("\u{FEFF}")
        reader.skipMisc()
        guard let root = reader.element(depth: 0) else { return nil }
        reader.skipMisc()
        guard reader.isAtEnd else { return nil }
        self = root
    }

    private init(name: String) { self.name = name }

    /// The elements of this name directly in this element.
    func all(_ name: String) -> [StorageDocument] { children.filter { $0.name == name } }

    /// The text of the first element of this name directly in this element.
    subscript(name: String) -> String? { children.first { $0.name == name }?.text }

    private struct Reader {
        private let scalars: [Unicode.Scalar]
        private var position = 0

        init(_ text: String) { scalars = Array(text.unicodeScalars) }

        var isAtEnd: Bool { position == scalars.count }
        private var next: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

        mutating func consume(_ literal: String) -> Bool {
            guard scalars[position...].starts(with: literal.unicodeScalars) else { return false }
            position += literal.unicodeScalars.count
            return true
        }

        /// Skips white space, comments and the declaration of XML.
        mutating func skipMisc() {
            while true {
                skipSpace()
                if consume("<?xml") { _ = skip(after: "?>") } else if !skipComment() { return }
            }
        }

        private mutating func skipSpace() {
            while let scalar = next, scalar.value <= 0x20 { position += 1 }
        }

        private mutating func skipComment() -> Bool { consume("<!--") && skip(after: "-->") != nil }

        /// Skips everything up to the end of `literal`. Returns what is before it.
        private mutating func skip(after literal: String) -> [Unicode.Scalar]? {
            let start = position
            while position < scalars.count {
                let end = position
                if consume(literal) { return Array(scalars[start..<end]) }
                position += 1
            }
            return nil
        }

        mutating func element(depth: Int) -> StorageDocument? {
            guard depth < maxDepth, consume("<"), let name = elementName() else { return nil }
            var element = StorageDocument(name: name)
            guard let isEmpty = skipAttributes() else { return nil }
            if isEmpty { return element }
            while let scalar = next {
                if scalar == "&" {
                    guard let referenced = reference() else { return nil }
                    element.text.unicodeScalars.append(referenced)
                } else if scalar != "<" {
                    element.text.unicodeScalars.append(scalar)
                    position += 1
                } else if consume("</") {
                    guard elementName() == name else { return nil }
                    skipSpace()
                    return consume(">") ? element : nil
                } else if consume("<![CDATA[") {
                    guard let content = skip(after: "]]>") else { return nil }
                    element.text.unicodeScalars.append(contentsOf: content)
                } else if !skipComment() {
                    guard let child = self.element(depth: depth + 1) else { return nil }
                    element.children.append(child)
                }
            }
            return nil
        }

        private mutating func elementName() -> String? {
            var name = ""
            while let scalar = next, scalar.properties.isAlphabetic || "0123456789-_.:".unicodeScalars.contains(scalar)
            {
                name.unicodeScalars.append(scalar)
                position += 1
            }
            return name.isEmpty ? nil : name
        }

        /// - Returns: whether the element has no content.
        private mutating func skipAttributes() -> Bool? {
            while true {
                skipSpace()
                if consume("/>") { return true }
                if consume(">") { return false }
                guard elementName() != nil else { return nil }
                skipSpace()
                guard consume("=") else { return nil }
                skipSpace()
                guard let quote = next, quote == "\"" || quote == "'" else { return nil }
                position += 1
                guard skip(after: String(quote)) != nil else { return nil }
            }
        }

        private static let named: [String: Unicode.Scalar] = [
            "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'",
        ]

        private mutating func reference() -> Unicode.Scalar? {
            guard consume("&") else { return nil }
            var name = ""
            while let scalar = next, scalar != ";", name.utf8.count < 10 {
                name.unicodeScalars.append(scalar)
                position += 1
            }
            guard consume(";") else { return nil }
            guard name.hasPrefix("#") else { return Self.named[name] }
            let digits = name.dropFirst()
            let value = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
            return value.flatMap { Unicode.Scalar($0) }
        }
    }
}
