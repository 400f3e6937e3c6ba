/// Fields whose values are not shown in a report.
enum Credentials {
    private static let names: Set<String> = ["authorization", "proxy-authorization", "cookie"]
    private static let substitute = "(hidden)"

    static func areIn(_ name: String) -> Bool { names.contains(name.lowercased()) }

    /// Returns the value of a field as reports show it.
    static func shown(_ value: String, of name: String) -> String { areIn(name) ? substitute : value }

    /// Returns the bytes of a request, with a substitute for the values of these fields.
    static func hidden(in bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var remaining = bytes[...]
        while !remaining.isEmpty {
            let end = remaining.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? remaining.endIndex
            let line = remaining[..<end]
            remaining = remaining[end...]
            if let colon = line.prefix(32).firstIndex(of: UInt8(ascii: ":")),
                areIn(String(decoding: line[..<colon], as: UTF8.self))
            {
                result += line[...colon] + " \(substitute)".utf8 + line.suffix(2).filter { $0 < 0x20 }
            } else {
                result += line
            }
        }
        return result
    }
}
