/// What a scenario cost.
package struct Traffic: Sendable, Encodable {
    /// Bytes of the representation.
    package let size: Int64
    /// Bytes of content that went over the wire.
    package let transferred: Int64
    package let requests: Int
    /// How often the command ran.
    package let runs: Int
    /// From the first interruption to the next byte of content; nil where there was none.
    package let recoveryMilliseconds: Int64?

    /// For a person.
    package var text: String {
        var parts = ["\(requests) request\(requests == 1 ? "" : "s")"]
        if size > 0 {
            let hundredths = transferred * 100 / size
            parts.append("\(hundredths / 100).\(String(hundredths % 100 + 100).dropFirst()) × the size")
        }
        if let recoveryMilliseconds { parts.append("resumed after \(recoveryMilliseconds) ms") }
        if runs > 1 { parts.append("\(runs) runs") }
        return parts.joined(separator: ", ")
    }
}
