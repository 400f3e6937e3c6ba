import Digests
import TestSupport
import Testing

@Suite("Encoded digest state")
struct EncodedStateTests {
    @Test(
        "A digest can be saved and continued at every position of a message of three blocks and five bytes",
        arguments: Algorithm.allCases)
    func everySplit(algorithm: Algorithm) throws {
        let message = pattern(3 * algorithm.blockSize + 5)
        let expected = algorithm.digest(of: message)
        for split in 0...message.count {
            var digest = RunningDigest(algorithm)
            digest.update(message.prefix(split))
            var restored = try #require(digest.restored(), "split at \(split)")
            #expect(restored.algorithm == algorithm)
            #expect(restored.count == UInt64(split))
            #expect(restored.finalized() == algorithm.digest(of: message.prefix(split)), "split at \(split)")
            restored.update(message.dropFirst(split))
            #expect(restored.finalized() == expected, "split at \(split)")
        }
    }

    @Test(
        "A digest can be saved and continued twice, at all pairs of positions near the start or end of a block",
        arguments: Algorithm.allCases)
    func everyPairOfSplits(algorithm: Algorithm) throws {
        let message = pattern(2 * algorithm.blockSize + 1)
        let expected = algorithm.digest(of: message)
        let positions =
            [0, 1, 2] + [-2, -1, 0, 1, 2].flatMap { [algorithm.blockSize + $0, 2 * algorithm.blockSize + $0] }
        for first in positions where first <= message.count {
            for second in positions where first <= second && second <= message.count {
                var digest = RunningDigest(algorithm)
                digest.update(message[..<first])
                digest = try #require(digest.restored())
                digest.update(message[first..<second])
                digest = try #require(digest.restored())
                digest.update(message[second...])
                #expect(digest.finalized() == expected, "splits at \(first) and \(second)")
            }
        }
    }

    @Test("The state can be encoded and decoded after every byte", arguments: Algorithm.allCases)
    func everyByte(algorithm: Algorithm) throws {
        let message = pattern(2 * algorithm.blockSize + 3)
        var digest = RunningDigest(algorithm)
        for byte in message {
            digest.update(CollectionOfOne(byte))
            digest = try #require(digest.restored())
        }
        #expect(digest.finalized() == algorithm.digest(of: message))
    }

    /// Every later version must be able to read states that this version stores.
    @Test("The encoding never changes")
    func goldenStates() throws {
        var sha256 = RunningDigest(.sha256)
        sha256.update("abc".utf8)
        #expect(
            hexadecimal(sha256.encodedState())
                == "0101" + "6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19"
                + "0000000000000003" + "616263")
        var sha512 = RunningDigest(.sha512)
        sha512.update("abc".utf8)
        #expect(
            hexadecimal(sha512.encodedState())
                == "0102" + "6a09e667f3bcc908bb67ae8584caa73b3c6ef372fe94f82ba54ff53a5f1d36f1"
                + "510e527fade682d19b05688c2b3e6c1f1f83d9abfb41bd6b5be0cd19137e2179"
                + "0000000000000003" + "616263")
    }

    @Test("After a complete block the encoding has no partial block", arguments: Algorithm.allCases)
    func completeBlocks(algorithm: Algorithm) {
        var digest = RunningDigest(algorithm)
        digest.update(pattern(algorithm.blockSize * 4))
        #expect(digest.encodedState().count == 2 + algorithm.digestSize + 8)
    }

    @Test("A state with missing or surplus bytes is refused", arguments: Algorithm.allCases)
    func wrongLengths(algorithm: Algorithm) {
        var digest = RunningDigest(algorithm)
        digest.update(pattern(algorithm.blockSize + 9))
        let state = digest.encodedState()
        for length in 0..<state.count {
            #expect(RunningDigest(encodedState: Array(state.prefix(length))) == nil, "\(length) bytes")
        }
        #expect(RunningDigest(encodedState: state + [0]) == nil)
        #expect(RunningDigest(encodedState: state + pattern(algorithm.blockSize)) == nil)
    }

    @Test("Unknown versions and algorithms are refused", arguments: Algorithm.allCases)
    func unknownHeads(algorithm: Algorithm) {
        let state = RunningDigest(algorithm).encodedState()
        for byte in UInt8.min...UInt8.max {
            var changed = state
            changed[0] = byte
            #expect((RunningDigest(encodedState: changed) != nil) == (byte == state[0]))
            changed = state
            changed[1] = byte
            #expect((RunningDigest(encodedState: changed) != nil) == (byte == state[1]))
        }
    }

    @Test("State words that contradict a count below one block are refused", arguments: Algorithm.allCases)
    func changedInitialWords(algorithm: Algorithm) {
        let state = RunningDigest(algorithm).encodedState()
        for position in 2..<2 + algorithm.digestSize {
            var changed = state
            changed[position] ^= 0x10
            #expect(RunningDigest(encodedState: changed) == nil, "byte \(position)")
        }
    }

    @Test("Counts beyond the maximum length of a message are refused", arguments: Algorithm.allCases)
    func counts(algorithm: Algorithm) throws {
        let head = [1, algorithm == .sha256 ? 1 : 2] + pattern(algorithm.digestSize)
        let largest = [0x1F] + [UInt8](repeating: 0xFF, count: 7)
        var digest = try #require(
            RunningDigest(encodedState: head + largest + pattern(algorithm.blockSize - 1)))
        #expect(digest.count == (1 << 61) - 1)
        digest.update(pattern(1000))
        #expect(digest.count == (1 << 61) + 999)
        #expect(digest.finalized().count == algorithm.digestSize)
        #expect(RunningDigest(encodedState: head + [0x20, 0, 0, 0, 0, 0, 0, 0]) == nil)
        #expect(RunningDigest(encodedState: head + [UInt8](repeating: 0xFF, count: 8) + pattern(127)) == nil)
    }

    @Test(
        "Garbage is refused, or decoded without a crash",
        arguments: [0x5EED_0001, 0x5EED_0002, 0x5EED_0003] as [UInt64])
    func garbage(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<SeededGenerator.count(4000) {
            var state: [UInt8]
            if Bool.random(using: &generator) {
                state = (0..<Int.random(in: 0...220, using: &generator)).map { _ in
                    .random(in: 0...255, using: &generator)
                }
                if state.count > 2, Bool.random(using: &generator) {
                    state.replaceSubrange(..<2, with: [1, .random(in: 1...2, using: &generator)])
                }
            } else {
                var digest = RunningDigest(Bool.random(using: &generator) ? .sha256 : .sha512)
                digest.update(pattern(.random(in: 0...400, using: &generator)))
                state = digest.encodedState()
                for _ in 0..<Int.random(in: 1...4, using: &generator) {
                    state[.random(in: state.indices, using: &generator)] = .random(in: 0...255, using: &generator)
                }
            }
            guard var digest = RunningDigest(encodedState: state) else { continue }
            #expect(digest.encodedState() == state, "seed \(seed)")
            #expect(digest.finalized().count == digest.algorithm.digestSize, "seed \(seed)")
            let count = digest.count
            digest.update(pattern(300))
            #expect(digest.count == count + 300, "seed \(seed)")
            #expect(digest.restored()?.finalized() == digest.finalized(), "seed \(seed)")
        }
    }
}
