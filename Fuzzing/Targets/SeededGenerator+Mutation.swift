import TestSupport

extension SeededGenerator {
    /// Returns a number that is often an edge case.
    mutating func number() -> Int64 {
        pick([
            0, 1, 2, 4, 5, 255, 256, 4096, 65_535, 999_999_999_999_999, 1_000_000_000_000_000, .max,
            Int64.random(in: 0...99, using: &self), Int64.random(in: 0...(.max), using: &self),
        ])
    }

    /// Returns the input with one to four changes.
    mutating func mutated(_ input: [UInt8], with others: [[UInt8]], dictionary: [String]) -> [UInt8] {
        var bytes = input
        for _ in 0..<Int.random(in: 1...4, using: &self) {
            let position = Int.random(in: 0...bytes.count, using: &self)
            let end = min(bytes.count, position + Int.random(in: 0...8, using: &self))
            switch Int.random(in: 0...6, using: &self) {
            case 0: bytes.insert(.random(in: 0...255, using: &self), at: position)
            case 1:
                bytes.replaceSubrange(
                    position..<end, with: (position..<end).map { _ in .random(in: 0...255, using: &self) })
            case 2: bytes.removeSubrange(position..<end)
            case 3: bytes.insert(contentsOf: bytes[position..<end], at: position)
            case 4: bytes.insert(contentsOf: dictionary.isEmpty ? [] : Array(pick(dictionary).utf8), at: position)
            case 5: bytes.insert(contentsOf: Array(String(number()).utf8), at: position)
            default:
                let other = pick(others)
                bytes = Array(bytes[..<position]) + other.dropFirst(Int.random(in: 0...other.count, using: &self))
            }
        }
        return bytes
    }
}
