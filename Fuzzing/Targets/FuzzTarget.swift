import TestSupport

/// A function that processes untrusted input, and the properties that must be true for every input.
///
/// libFuzzer and the tests with generated input run the same targets.
struct FuzzTarget: Sendable {
    let name: String
    /// The maximum size of an input in bytes.
    var maxLength = 4096
    /// Words of valid input, for the dictionary.
    var dictionary: [String] = []
    /// Returns valid and nearly valid input, the same for the same state of the generator.
    let seeds: @Sendable (inout SeededGenerator) -> [[UInt8]]
    /// Processes one input. Throws a violation if a property is not true. A trap ends the process.
    let check: @Sendable (UnsafeRawBufferPointer) throws(Violation) -> Void

    static let all: [FuzzTarget] = [
        .structuredFields, .requests, .ranges, .names, .values, .problems, .responseHeads, .originResponses,
        .resumeData, .savedTransfers,
        .tokens, .cookies, .savedForms, .storageDocuments, .server, .guardedServer,
    ]
}

extension FuzzTarget: CustomStringConvertible {
    var description: String { name }
}
