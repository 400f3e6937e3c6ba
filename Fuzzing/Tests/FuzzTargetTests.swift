import TestSupport
import Testing

/// Runs the targets of `make fuzz` with some thousand generated inputs, which are the same in every run.
@Suite("Fuzz targets", .serialized, .timeLimit(.minutes(15)))
struct FuzzTargetTests {
    private static let seeds: [UInt64] = [1, 0xDEAD_BEEF]

    @Test("Every property is true for generated and for mutated input", arguments: FuzzTarget.all, seeds)
    func generated(target: FuzzTarget, seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let seeds = target.seeds(&generator)
        try #require(!seeds.isEmpty)
        let isServer = target.name.hasSuffix("server")
        for input in seeds.prefix(isServer ? 150 : 1000) { check(target, input, seed) }
        for _ in 0..<(isServer ? 100 : 2000) {
            let input = generator.mutated(generator.pick(seeds), with: seeds, dictionary: target.dictionary)
            check(target, Array(input.prefix(target.maxLength)), seed)
        }
        if isServer { try FuzzTarget.endServer(of: target) }
    }

    /// Inputs with which libFuzzer found defects.
    private static let findings: [(FuzzTarget, String)] = [
        // libmicrohttpd refused this request and sent the head of the response twice.
        (.server, "PUT /files/a HTTP/1.0\r\nHost: localhost:80\r\nContent-Length: ]0\r\n\r\n")
    ]

    @Test("Inputs with which libFuzzer found defects pass the checks", arguments: findings)
    func found(target: FuzzTarget, input: String) { check(target, Array(input.utf8), 0) }

    private func check(_ target: FuzzTarget, _ input: [UInt8], _ seed: UInt64) {
        do { try input.withUnsafeBytes { try target.check($0) } } catch {
            Issue.record("\(target), seed \(seed): \(error); the input is \(input)")
        }
    }
}
