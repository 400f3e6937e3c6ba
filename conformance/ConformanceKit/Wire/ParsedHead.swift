import HTTPSemantics

/// A status line and header section that were parsed leniently.
struct ParsedHead: Sendable {
    var minorVersion = 1
    var status = 0
    var fields = Fields()
    /// The deviations from RFC 9112 that the parser accepted, as texts.
    var anomalies: [String] = []

    /// Returns the position after the empty line that ends the header section; `nil` if this line has not arrived yet.
    static func end(of bytes: [UInt8], from start: Int) -> Int? {
        var index = start
        var isLineEmpty = true
        var isFirst = true
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\n"):
                if isLineEmpty && !isFirst { return index + 1 }
                isLineEmpty = true
                isFirst = false
            case UInt8(ascii: "\r") where index + 1 < bytes.count && bytes[index + 1] == UInt8(ascii: "\n"): break
            default: isLineEmpty = false
            }
            index += 1
        }
        return nil
    }

    /// - Throws: ``WireFailure/malformed(_:)`` if the first line is not a status line.
    init(_ bytes: ArraySlice<UInt8>) throws(WireFailure) {
        var lines: [ArraySlice<UInt8>] = []
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast() {
            if line.last == UInt8(ascii: "\r") {
                lines.append(line.dropLast())
            } else {
                note("a line ends with LF alone")
                lines.append(line)
            }
        }
        guard let first = lines.first else { throw .malformed("an empty head") }
        try readStatusLine(String(decoding: first, as: UTF8.self))
        for line in lines.dropFirst() where !line.isEmpty { readField(line) }
    }

    private mutating func readStatusLine(_ line: String) throws(WireFailure) {
        let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let minor = Int(parts[0].dropFirst(7)),
            parts[1].utf8.count == 3, let status = Int(parts[1]), (100..<600).contains(status)
        else { throw .malformed("an invalid status line: '\(line.prefix(80))'") }
        if parts.count == 2 { note("no space after the status code") }
        minorVersion = minor
        self.status = status
    }

    private mutating func readField(_ line: ArraySlice<UInt8>) {
        let text = String(decoding: line, as: UTF8.self)
        if line.first == UInt8(ascii: " ") || line.first == UInt8(ascii: "\t") {
            note("a folded field line")
            return
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
            note("a field line without a colon: '\(text.prefix(60))'")
            return
        }
        var name = String(decoding: line[..<colon], as: UTF8.self)
        if name.hasSuffix(" ") || name.hasSuffix("\t") {
            note("white space before a colon")
            while name.hasSuffix(" ") || name.hasSuffix("\t") { name.removeLast() }
        }
        if !Fields.isValidName(name) { note("a field name that is not a token: '\(name.prefix(60))'") }
        let value = String(
            decoding: line[(colon + 1)...].drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }, as: UTF8.self)
        if !Fields.isValidValue(value) { note("a control character in the value of \(name)") }
        fields.append(name, value)
    }

    private mutating func note(_ text: String) {
        if anomalies.count < 10, !anomalies.contains(text) { anomalies.append(text) }
    }
}

extension RequestHead {
    /// Parses a head up to and including its empty line. Its lines may end with LF alone.
    /// - Throws: ``WireFailure/malformed(_:)``.
    init(received bytes: ArraySlice<UInt8>) throws(WireFailure) {
        let lines = bytes.split(separator: UInt8(ascii: "\n")).map {
            $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0
        }
        let words = String(decoding: lines.first ?? [], as: UTF8.self)
            .split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 3, let version = ProtocolVersion(parsing: words[2]) else {
            throw .malformed("an invalid request line: '\(words.joined(separator: " ").prefix(80))'")
        }
        var fields = Fields()
        for line in lines.dropFirst() where !line.isEmpty {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
                throw .malformed("a field line without a colon: '\(String(decoding: line.prefix(60), as: UTF8.self))'")
            }
            let name = String(decoding: line[..<colon], as: UTF8.self)
            guard Fields.isValidName(name) else { throw .malformed("an invalid field name: '\(name.prefix(60))'") }
            let value = String(decoding: line[(colon + 1)...], as: UTF8.self)
            fields.append(
                name,
                String(value.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed()))
        }
        self.init(method: Method(rawValue: words[0]), target: words[1], version: version, fields: fields)
    }
}
