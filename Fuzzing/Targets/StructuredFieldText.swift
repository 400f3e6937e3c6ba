import TestSupport

/// Values of structured fields as text.
enum StructuredFieldText {
    static func value(_ generator: inout SeededGenerator) -> String {
        let members = (0..<Int.random(in: 1...4, using: &generator)).map { _ in member(&generator) }
        return members.joined(separator: generator.pick([", ", ",", " ,\t"]))
    }

    private static func member(_ generator: inout SeededGenerator) -> String {
        let key = generator.pick(["", "", "a=", "sha-256=", "max-size=", "*x.y-z_1="])
        if Bool.random(using: &generator) { return key + item(&generator) }
        let items = (0..<Int.random(in: 0...3, using: &generator)).map { _ in item(&generator) }
        return "\(key)(\(items.joined(separator: " ")))" + generator.pick(["", ";q=1", ";a;b=?0"])
    }

    private static func item(_ generator: inout SeededGenerator) -> String {
        let bare = generator.pick([
            "?1", "?0", "\(generator.number())", "-7", "1.25", "-999999999999.999", "tok/en:*", "\"s\\\"t\\\\r\"",
            ":aGVsbG8=:", "::", "@1659578233", "%\"f%c3%bc\"", "\"\"",
        ])
        return bare + generator.pick(["", "", ";a", ";a=1;b=\"c\"", "; x=?0"])
    }
}
