import TestSupport

extension SeededGenerator {
    /// A string of up to `length` characters from `alphabet`.
    mutating func string(from alphabet: [Character], upTo length: Int) -> String {
        String(
            (0..<Int.random(in: 0...length, using: &self)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &self)]
            })
    }

    /// A string of any Unicode scalars, mostly from ranges that parsers treat specially.
    mutating func unicode(upTo length: Int) -> String {
        var scalars = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...length, using: &self) {
            let limit: UInt32 = [0x20, 0x80, 0x80, 0x80, 0x100, 0x3000, 0x110000].randomElement(using: &self) ?? 0x80
            scalars.append(Unicode.Scalar(UInt32.random(in: 0..<limit, using: &self)) ?? "?")
        }
        return String(scalars)
    }

    /// The bytes of `text` with some of them replaced, removed or repeated.
    mutating func mutate(_ text: String) -> String {
        var bytes = Array(text.utf8)
        for _ in 0..<Int.random(in: 1...3, using: &self) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &self)
            switch Int.random(in: 0..<3, using: &self) {
            case 0: bytes[index] = UInt8.random(in: 0...255, using: &self)
            case 1: bytes.remove(at: index)
            default: bytes.insert(bytes[index], at: Int.random(in: 0...bytes.count, using: &self))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    static let seeds: [UInt64] = [1, 2, 3, 20_260_701, 0xDEAD_BEEF]
}
