import StructuredFields
import Testing

@Suite("httpwg corpus", .enabled(if: Corpus.directory != nil, Comment(rawValue: Corpus.absence)))
struct CorpusTests {
    @Test("STF-12: all cases of the corpus are parsed and serialized again as expected", arguments: Corpus.parsingFiles)
    func parses(file: String) throws {
        var counts = (equal: 0, refused: 0, tolerated: 0)
        for testCase in try Corpus.cases(in: file) {
            let lines = try #require(testCase.raw, "\(testCase.name)")
            let outcome =
                switch testCase.type {
                case .item: try run(testCase, lines, try testCase.mustFail ? nil : testCase.expectedItem())
                case .list: try run(testCase, lines, try testCase.mustFail ? nil : testCase.expectedList())
                case .dictionary: try run(testCase, lines, try testCase.mustFail ? nil : testCase.expectedDictionary())
                }
            switch outcome {
            case .equal: counts.equal += 1
            case .refused: counts.refused += 1
            case .tolerated: counts.tolerated += 1
            }
        }
        #expect(counts.equal + counts.refused > 0)
        print("STF-12 \(file): \(counts.equal) equal, \(counts.refused) refused, \(counts.tolerated) failures allowed")
    }

    @Test("STF-12: all cases of the corpus are serialized as expected", arguments: Corpus.serializingFiles)
    func serializes(file: String) throws {
        var counts = (equal: 0, refused: 0)
        for testCase in try Corpus.cases(in: file) {
            let value: (any FieldValue)? =
                switch testCase.type {
                case .item: try testCase.expectedItem()
                case .list: try testCase.expectedList()
                case .dictionary: try testCase.expectedDictionary()
                }
            let text = try? value?.serialized()
            if testCase.mustFail {
                #expect(text == nil, "STF-12 \(file): \(testCase.name)")
                counts.refused += 1
            } else {
                #expect(text == testCase.canonical, "STF-12 \(file): \(testCase.name)")
                counts.equal += 1
            }
        }
        #expect(counts.equal + counts.refused > 0)
        print("STF-12 \(file): \(counts.equal) equal, \(counts.refused) refused")
    }

    private enum Outcome {
        case equal, refused, tolerated
    }

    private func run<Value: FieldValue>(
        _ testCase: CorpusCase, _ lines: [String], _ expected: Value?
    ) throws -> Outcome {
        let parsed = Result { () throws(ParseFailure) in try Value(parsing: lines) }
        switch parsed {
        case .failure(let failure):
            #expect(testCase.mustFail || testCase.canFail, "\(testCase.name): \(failure)")
            return testCase.mustFail ? .refused : .tolerated
        case .success(let value):
            #expect(!testCase.mustFail, "\(testCase.name)")
            #expect(value == expected, "\(testCase.name)")
            #expect(try value.serialized() == testCase.canonical, "\(testCase.name)")
            return .equal
        }
    }
}
