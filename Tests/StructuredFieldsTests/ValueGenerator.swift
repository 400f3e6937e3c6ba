import StructuredFields
import TestSupport

/// Generates random values that the format can express.
struct ValueGenerator {
    var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &random)
    }

    mutating func text(of alphabet: String, startingWith first: String? = nil, upTo length: Int = 12) -> String {
        var text = ""
        for index in 0..<number((first == nil ? 0 : 1)...length) {
            let choices = index == 0 ? first ?? alphabet : alphabet
            guard let character = choices.randomElement(using: &random) else { break }
            text.append(character)
        }
        return text
    }

    mutating func key() -> String {
        text(of: "abcxyz0189_-.*", startingWith: "abcxyz*", upTo: 5)
    }

    mutating func bareItem() -> BareItem {
        let limit = 999_999_999_999_999
        switch number(0...8) {
        case 0: return .integer(number(-limit...limit))
        case 1: return .integer(number(-9...99))
        case 2: return Decimal(thousandths: number(-limit...limit)).map(BareItem.decimal) ?? .boolean(false)
        case 3: return .string(text(of: " !\"\\aB~09;,=:", upTo: 20))
        case 4: return .token(text(of: "aZ09!#$%&'*+-.^_`|~:/", startingWith: "aZ*"))
        case 5: return .byteSequence((0..<number(0...20)).map { _ in .random(in: 0...255, using: &random) })
        case 6: return .boolean(Bool.random(using: &random))
        case 7: return .date(number(-limit...limit))
        default: return .displayString(text(of: " a\"%\\\u{0}\n\u{7F}ü€😀\u{FEFF}"))
        }
    }

    mutating func parameters() -> Parameters {
        var parameters = Parameters()
        for _ in 0..<max(0, number(-3...4)) {
            parameters[key()] = bareItem()
        }
        return parameters
    }

    mutating func item() -> Item {
        Item(bareItem(), parameters: parameters())
    }

    mutating func member() -> Member {
        guard number(0...3) == 0 else { return .item(item()) }
        return .innerList(InnerList((0..<number(0...4)).map { _ in item() }, parameters: parameters()))
    }

    mutating func list() -> List {
        List((0..<number(0...6)).map { _ in member() })
    }

    mutating func dictionary() -> OrderedDictionary {
        var dictionary = OrderedDictionary()
        for _ in 0..<number(0...24) {
            dictionary[key()] = member()
        }
        return dictionary
    }
}
