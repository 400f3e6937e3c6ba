import Glibc

/// A SplitMix64 generator. It returns the same numbers for the same seed on every system.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    package let seed: UInt64
    private var state: UInt64

    package init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns true in one of `count` cases.
    package mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

    /// One of the elements. The array must not be empty.
    package mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &self)]
    }

    // MARK: - The seed of a test run

    /// The value of `ONWARD_SEED`; a random seed if that variable is not set.
    package static let runSeed: UInt64 =
        getenv("ONWARD_SEED").flatMap { UInt64(String(cString: $0)) } ?? UInt64.random(in: 1...999_999_999)

    /// The number of generated cases of a test: `count`, or a fifth of it if `ONWARD_SHORT` is set.
    package static func count(_ count: Int) -> Int { isShort ? count / 5 : count }

    /// Whether `make test-unit` runs the tests.
    package static let isShort = getenv("ONWARD_SHORT") != nil

    /// A generator for one part of the run. Different numbers result in different generators.
    ///
    /// The scheduling of processes is random too, so a second run with the same seed does not always repeat a failure.
    package static func part(_ number: Int) -> SeededGenerator {
        SeededGenerator(seed: runSeed &+ UInt64(number) &* 1_000_000_007)
    }
}
