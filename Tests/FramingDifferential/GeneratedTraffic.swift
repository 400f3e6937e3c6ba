import TestSupport

/// The bytes of a connection and the offsets at which they are cut into pieces. They are valid pipelines of requests,
/// or pipelines with changes that some recipients misread.
struct GeneratedTraffic {
    let bytes: [UInt8]
    /// The sorted offsets of the cuts; each piece is sent after the server received the one before it.
    let cuts: [Int]

    init(bytes: [UInt8], cuts: [Int] = []) { (self.bytes, self.cuts) = (bytes, cuts) }

    init(_ generator: inout SeededGenerator) {
        var parts: [[UInt8]] = []
        for number in 0..<Int.random(in: 1...4, using: &generator) {
            parts += Self.request(number, &generator)
        }
        if Int.random(in: 0...3, using: &generator) > 0 {
            for _ in 0..<Int.random(in: 1...2, using: &generator) { Self.change(&parts, &generator) }
        }
        var bytes = parts.flatMap { $0 }
        if Int.random(in: 0...3, using: &generator) == 0, !bytes.isEmpty { Self.change(&bytes, &generator) }
        if Int.random(in: 0...9, using: &generator) == 0 {
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator))
        }
        self.bytes = bytes
        cuts = Self.cuts(bytes.count, &generator)
    }

    private static func cuts(_ count: Int, _ generator: inout SeededGenerator) -> [Int] {
        switch Int.random(in: 0...9, using: &generator) {
        case 0: Array(0..<min(count, 600))
        case 1...4: (0..<3).map { _ in Int.random(in: 0...count, using: &generator) }.sorted()
        default: []
        }
    }

    // MARK: - Valid requests

    /// A request in parts; changes are made between the parts, because a change is likely to have an effect there.
    private static func request(_ number: Int, _ generator: inout SeededGenerator) -> [[UInt8]] {
        var parts: [String] = generator.pick([[], [], [], ["\r\n"], ["\r\n", "\r\n"]])
        let version = generator.pick([
            "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0",
        ])
        parts.append("\(generator.pick(["PUT", "POST", "GET", "HEAD", "PATCH"])) /\(number)")
        parts += [generator.pick(["", "?a=%00"]), " \(version)", "\r\n", "Host:", " localhost\r\n"]
        for _ in 0..<Int.random(in: 0...2, using: &generator) { parts.append(generator.pick(fields)) }
        let content = content(&generator)
        switch Int.random(in: 0...6, using: &generator) {
        case 0...1: return (parts + ["\r\n"]).map { Array($0.utf8) }
        case 2...3:
            parts += ["Content-Length:", generator.pick([" ", "", "\t "]), "\(content.count)", "\r\n", "\r\n"]
            return parts.map { Array($0.utf8) } + [content]
        default:
            parts += [
                "Transfer-Encoding:", " \(generator.pick(["chunked", "Chunked", "chunked \t"]))", "\r\n", "\r\n",
            ]
            return parts.map { Array($0.utf8) } + chunks(content, &generator)
        }
    }

    private static let fields = [
        "X: y\r\n", "X:\r\n", "Connection: keep-alive\r\n", "Connection: close\r\n", "X: \u{e4}\t;\r\n",
        "Cookie: a=b; c\r\n",
        "Connection: Upgrade\r\n", "Upgrade: h2c\r\n", "Content-length2: 5\r\n",
    ]

    private static func content(_ generator: inout SeededGenerator) -> [UInt8] {
        switch Int.random(in: 0...5, using: &generator) {
        case 0: []
        case 1: Array("GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        case 2: Array("0\r\n\r\n".utf8)
        case 3: (0..<Int.random(in: 0...40, using: &generator)).map { _ in generator.pick([0, 10, 13, 0x30, 0x41]) }
        case 4: [UInt8](repeating: 0x61, count: Int.random(in: 0...3000, using: &generator))
        default:
            (0..<Int.random(in: 1...20, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
        }
    }

    private static func chunks(_ content: [UInt8], _ generator: inout SeededGenerator) -> [[UInt8]] {
        var parts: [[UInt8]] = []
        var remaining = content[...]
        let maxSize = generator.pick([1, 1, 5, 16, 300, 5000])
        while !remaining.isEmpty {
            let piece = remaining.prefix(Int.random(in: 1...maxSize, using: &generator))
            remaining = remaining.dropFirst(piece.count)
            let size = String(piece.count, radix: 16, uppercase: generator.next() % 2 == 0)
            parts += [Array(generator.pick(["", "", "", "0", "000"]).utf8), Array(size.utf8)]
            parts += [
                Array(generator.pick(["", "", "", ";a", " ;a=b", "\t;c=\"d;e\"", ";"]).utf8), Array("\r\n".utf8),
            ]
            parts += [Array(piece), Array("\r\n".utf8)]
        }
        parts += [Array(generator.pick(["0", "00", "0;last"]).utf8), Array("\r\n".utf8)]
        for _ in 0..<generator.pick([0, 0, 0, 1, 2]) {
            parts += [Array(generator.pick(["T: u", "T:", "Content-Length: 7"]).utf8), Array("\r\n".utf8)]
        }
        return parts + [Array("\r\n".utf8)]
    }

    // MARK: - Changes

    private static let fragments = [
        "\0", "\0\r\n", "\r", "\n", "\r\n", "\r\n\r\n", "\n\n", " ", "\t", ":", ";", ",", "+", "-", "0x", "5", "0",
        "\u{b}",
        "Content-Length: 5\r\n", "Content-Length : 5\r\n", "Content-Length: 5, 5\r\n", "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding:\u{b}chunked\r\n", " chunked", "\r\n ", "\r\n\t",
        "Content-Length: 18446744073709551615\r\n", "Content-Length: 18446744073709551617\r\n", "ffffffffffffffff",
        "10000000000000000", "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n", "Host: a\r\n", "\u{7f}", "0\r\n\r\n",
        "0\r\n\0\r\n", "\0X: y\r\n", "HTTP/1.1",
    ]

    private static func change(_ parts: inout [[UInt8]], _ generator: inout SeededGenerator) {
        let place = Int.random(in: 0...parts.count, using: &generator)
        switch Int.random(in: 0...5, using: &generator) {
        case 0...3: parts.insert(Array(generator.pick(fragments).utf8), at: place)
        case 4 where place < parts.count: parts.remove(at: place)
        case 5 where place < parts.count: parts[place] = Array(generator.pick(fragments).utf8)
        default: break
        }
    }

    private static func change(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        let place = Int.random(in: bytes.indices, using: &generator)
        switch Int.random(in: 0...2, using: &generator) {
        case 0: bytes[place] = generator.pick([0, 9, 10, 13, 32, 0x30, 0x7F, 0xFF])
        case 1: bytes.remove(at: place)
        default: bytes.insert(generator.pick([0, 9, 10, 13, 32, 0x3A]), at: place)
        }
    }
}
