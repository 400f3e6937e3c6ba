/// The text of the entries of a transcript.
enum TranscriptText {
    static func lines(of entry: Transcript.Entry) -> String {
        let time = "\(entry.time / 1000).\(String(entry.time % 1000 + 1000).dropFirst())"
        let start = "    " + String(repeating: " ", count: max(0, 9 - time.count)) + "\(time) ms  #\(entry.connection) "
        switch entry.event {
        case .note(let text): return start + "· \(text)\n"
        case .sent(let bytes, let omitted): return lines(start, ">", bytes, omitted)
        case .received(let bytes, let omitted): return lines(start, "<", bytes, omitted)
        }
    }

    private static func lines(_ start: String, _ mark: String, _ bytes: [UInt8], _ omitted: Int) -> String {
        var text = ""
        var lead = start
        for line in pieces(bytes) {
            text += lead + mark + " " + line + "\n"
            lead = String(repeating: " ", count: start.count)
        }
        if omitted > 0 { text += lead + mark + " … \(omitted) more bytes\n" }
        return text
    }

    /// Returns a text for each line of the bytes; content is cut off.
    private static func pieces(_ bytes: [UInt8]) -> [String] {
        var pieces: [String] = []
        var remaining = bytes[...]
        while !remaining.isEmpty, pieces.count < 40 {
            let end = remaining.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? remaining.endIndex
            let line = remaining[..<end]
            if line.contains(where: { !(0x20...0x7E).contains($0) && !"\r\n\t".utf8.contains($0) }) {
                // The remaining bytes are content. Only their beginning is shown.
                pieces.append(
                    "\(escaped(remaining.prefix(24)))\(remaining.count > 24 ? "… (\(remaining.count) bytes)" : "")")
                return pieces
            }
            let shown = escaped(line.prefix(160))
            pieces.append(line.count > 160 ? "\(shown)… (\(line.count) bytes)" : shown)
            remaining = remaining[end...]
        }
        if !remaining.isEmpty { pieces.append("… \(remaining.count) more bytes") }
        return pieces
    }

    /// Returns printable ASCII characters unchanged except the backslash, and all other bytes escaped as in C.
    static func escaped(_ bytes: some Sequence<UInt8>) -> String {
        var text = ""
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\r"): text += "\\r"
            case UInt8(ascii: "\n"): text += "\\n"
            case UInt8(ascii: "\t"): text += "\\t"
            case UInt8(ascii: "\\"): text += "\\\\"
            case 0x20...0x7E: text.unicodeScalars.append(UnicodeScalar(byte))
            default: text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text
    }
}
