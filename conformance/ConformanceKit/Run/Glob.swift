/// A shell pattern: `*` matches any text, `?` matches any single character.
struct Glob: Sendable {
    private let pattern: [Character]

    init(_ pattern: String) { self.pattern = Array(pattern) }

    func matches(_ text: String) -> Bool {
        let text = Array(text)
        var position = 0
        var next = 0
        // The positions at which to continue if the text after the last star does not match.
        var star: (pattern: Int, text: Int)?
        while position < text.count {
            if next < pattern.count, pattern[next] == "*" {
                star = (next, position)
                next += 1
            } else if next < pattern.count, pattern[next] == "?" || pattern[next] == text[position] {
                next += 1
                position += 1
            } else if let last = star {
                star = (last.pattern, last.text + 1)
                next = last.pattern + 1
                position = last.text + 1
            } else {
                return false
            }
        }
        return pattern[next...].allSatisfy { $0 == "*" }
    }
}
