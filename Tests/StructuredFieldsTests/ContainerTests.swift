import StructuredFields
import Testing

@Suite("Lists and Dictionaries")
struct ContainerTests {
    @Test("Without lines or members the value is empty and serializes to an empty text")
    func empty() throws {
        #expect(try List(parsing: [] as [String]) == List())
        #expect(try List(parsing: "  ").members.isEmpty)
        #expect(try OrderedDictionary(parsing: [] as [String]) == [:])
        #expect(try List().serialized().isEmpty)
        #expect(try OrderedDictionary().serialized().isEmpty)
    }

    @Test("Spaces and tabs are allowed around commas, and lines are combined")
    func whitespace() throws {
        let expected = List([.item(Item(.integer(1))), .item(Item(.token("a"))), .innerList(InnerList())])
        #expect(try List(parsing: "1\t , \t a,()") == expected)
        #expect(try List(parsing: ["1", "a,()"]) == expected)
        #expect(try List(parsing: "1,a, ( )  ") == expected)
        #expect(try expected.serialized() == "1, a, ()")
    }

    @Test(
        "Malformed Lists fail",
        arguments: [
            ("1,", 1, .trailingComma), ("1, \t", 1, .trailingComma), (",1", 0, .invalidItem), ("1,,2", 2, .invalidItem),
            ("1 2", 2, .missingComma), ("(1", 2, .unexpectedEnd), ("(1 ", 3, .unexpectedEnd), ("(", 1, .unexpectedEnd),
            ("(1,2)", 2, .invalidInnerList), ("(1\t2)", 2, .invalidInnerList), ("((1))", 1, .invalidItem),
            ("(1\"a\")", 2, .invalidInnerList), ("()(", 2, .missingComma), ("\t1", 0, .invalidItem),
            ("\"a", 2, .unexpectedEnd), ("\"a\\", 3, .unexpectedEnd), ("\"a\\x\"", 3, .invalidString),
            ("\"\u{7F}\"", 1, .invalidString), ("@1.5", 4, .invalidDate), ("@", 1, .unexpectedEnd),
            ("%\"%C3%BC\"", 3, .invalidDisplayString), ("%\"%c3\"", 0, .invalidDisplayString),
            ("%\"%ed%a0%80\"", 0, .invalidDisplayString), ("%a", 1, .invalidDisplayString), ("%", 1, .unexpectedEnd),
            (":a!==:", 1, .invalidByteSequence), ("?2", 1, .invalidBoolean),
        ] as [(String, Int, ParseFailure.Reason)])
    func failingLists(text: String, offset: Int, reason: ParseFailure.Reason) {
        #expect(throws: ParseFailure(offset: offset, reason: reason)) { try List(parsing: text) }
    }

    @Test(
        "Malformed Dictionaries fail",
        arguments: ["a=1,", "a=1 b", "A=1", "=1", "a=", "a =1", "a= 1", "1=a", "a=1,,b=2", "a=1;", "a;=1", "é=1"])
    func failingDictionaries(text: String) {
        #expect(throws: ParseFailure.self) { try OrderedDictionary(parsing: text) }
    }

    @Test("STF-16: if a key occurs twice, the last member is used, at the position of the first member")
    func repeatedKeys() throws {
        let parsed = try OrderedDictionary(parsing: ["max-size=1, max-age=9;x=1", "max-size=20"])
        #expect(parsed.keys == ["max-size", "max-age"])
        #expect(parsed["max-size"] == .item(Item(.integer(20))))
        #expect(try parsed.serialized() == "max-size=20, max-age=9;x=1")
    }

    @Test("A key without a value is the Boolean true and can have parameters")
    func keysAlone() throws {
        let parsed = try OrderedDictionary(parsing: "a, b;x=1, c=?1;y, d=?0, e=(a b);z")
        #expect(parsed["a"] == .item(Item(.boolean(true))))
        #expect(parsed["b"] == .item(Item(.boolean(true), parameters: ["x": .integer(1)])))
        #expect(try parsed.serialized() == "a, b;x=1, c;y, d=?0, e=(a b);z")
    }

    @Test("Values can be parsed from bytes; a byte beyond ASCII fails at its position")
    func bytes() throws {
        #expect(throws: ParseFailure(offset: 2, reason: .nonASCII)) { try List(parsing: [0x61, 0x2C, 0xFF, 0xFE]) }
        #expect(try List(parsing: Array("a, b".utf8)[1...].dropFirst(2)).members == [.item(Item(.token("b")))])
    }

    @Test("Keys are found, replaced and removed in containers of any size", arguments: [1, 15, 16, 17, 18, 40])
    func manyKeys(count: Int) throws {
        let keys = (0..<count).map { "k\($0)" }
        var dictionary = OrderedDictionary()
        var parameters = Parameters()
        for (number, key) in keys.enumerated() {
            dictionary[key] = .item(Item(.integer(number)))
            parameters[key] = .integer(number)
        }
        #expect(dictionary.keys == keys)
        #expect(parameters.keys == keys)
        for (number, key) in keys.enumerated() {
            #expect(dictionary[key] == .item(Item(.integer(number))))
            dictionary[key] = .item(Item(.integer(-number)))
        }
        #expect(dictionary.keys == keys)
        #expect(dictionary["absent"] == nil)
        dictionary["absent"] = nil
        for removed in keys {
            dictionary[removed] = nil
            parameters[removed] = nil
            #expect(dictionary[removed] == nil)
            for (key, member) in dictionary {
                #expect(dictionary[key] == member)
            }
            #expect(dictionary.keys == parameters.keys)
        }
        #expect(dictionary.isEmpty && parameters.isEmpty)
        #expect(dictionary == [:])
    }

    @Test("Equality depends on the order of members, not on how the container was built")
    func equality() throws {
        let parameters: Parameters = ["a": .integer(1), "b": .integer(2)]
        var grown = Parameters()
        for number in 0..<30 { grown["k\(number)"] = .integer(number) }
        for number in 0..<30 { grown["k\(number)"] = nil }
        grown["a"] = .integer(1)
        grown["b"] = .integer(2)
        #expect(grown == parameters)
        #expect(grown.hashValue == parameters.hashValue)
        #expect(parameters != ["b": .integer(2), "a": .integer(1)])
        #expect(["a": .integer(3), "b": .integer(2), "a": .integer(1)] == parameters)
    }

    @Test("A dictionary with 20,000 keys contains all of them")
    func veryManyKeys() throws {
        let text = (0..<20_000).map { "k\($0)=\($0)" }.joined(separator: ",") + ",k7=0"
        let parsed = try OrderedDictionary(parsing: text)
        #expect(parsed.count == 20_000)
        #expect(parsed["k7"] == .item(Item(.integer(0))))
        #expect(parsed["k19999"] == .item(Item(.integer(19_999))))
    }
}
