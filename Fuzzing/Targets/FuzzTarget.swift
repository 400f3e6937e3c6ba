import TestSupport

/// Something that takes bytes from strangers, with what has to hold whatever they are.
///
/// libFuzzer drives the same targets that the tests drive with generated input.
struct FuzzTarget: Sendable {
    let name: String
    /// Bytes of one input at most.
    var maximumLength = 4096
    /// Words that valid input is made of.
    var dictionary: [String] = []
    /// Valid input and input that is nearly so; the same for the same generator.
    let seeds: @Sendable (inout SeededGenerator) -> [[UInt8]]
    /// Takes one input in. Whatever traps is found by whoever drives it; what merely is wrong is thrown.
    let check: @Sendable (UnsafeRawBufferPointer) throws(Violation) -> Void

    static let all: [FuzzTarget] = [
        .structuredFields, .requests, .ranges, .names, .values, .problems, .responseHeads, .resumeData, .savedTransfers,
        .tokens, .savedForms, .server, .guardedServer,
    ]
}

extension FuzzTarget: CustomStringConvertible {
    var description: String { name }
}
