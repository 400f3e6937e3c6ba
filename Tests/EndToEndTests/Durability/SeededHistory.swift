import FoundationEssentials

/// The random choices of one history; the same seed makes the same ones (SplitMix64).
///
/// The moments at which processes run are not among them, so a seed narrows a failure down but need not repeat it.
struct SeededHistory: RandomNumberGenerator {
    let seed: UInt64
    private var state: UInt64

    init(_ seed: UInt64) {
        self.seed = seed
        state = seed &* 0x9E37_79B9_7F4A_7C15
    }

    /// The seed of a whole run: `ONWARD_SEED`, otherwise another one every time.
    static let runSeed: UInt64 =
        ProcessInfo.processInfo.environment["ONWARD_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...999_999_999)

    /// A history of its own for the part of a run that `number` names.
    static func part(_ number: Int) -> SeededHistory { SeededHistory(runSeed &+ UInt64(number) &* 1_000_000_007) }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    /// True in one of `count` cases.
    mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }
}
