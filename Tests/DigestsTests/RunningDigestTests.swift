import Digests
import Testing

struct RunningDigestTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        var algorithm: Algorithm
        var name: String
        var message: [UInt8]
        var digest: String

        var testDescription: String { "\(algorithm.rawValue) of \(name)" }
    }

    private static let longMessage = Array(
        """
        abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno\
        ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu
        """.utf8)

    static let vectors = [
        Vector(
            algorithm: .sha256, name: "nothing", message: [],
            digest: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        Vector(
            algorithm: .sha256, name: "abc", message: Array("abc".utf8),
            digest: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        Vector(
            algorithm: .sha256, name: "the 896-bit message", message: longMessage,
            digest: "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"),
        Vector(
            algorithm: .sha256, name: "a million a", message: Array(repeating: 0x61, count: 1_000_000),
            digest: "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        Vector(
            algorithm: .sha512, name: "nothing", message: [],
            digest: """
                cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
                47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e
                """),
        Vector(
            algorithm: .sha512, name: "abc", message: Array("abc".utf8),
            digest: """
                ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f
                """),
        Vector(
            algorithm: .sha512, name: "the 896-bit message", message: longMessage,
            digest: """
                8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018\
                501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909
                """),
        Vector(
            algorithm: .sha512, name: "a million a", message: Array(repeating: 0x61, count: 1_000_000),
            digest: """
                e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb\
                de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b
                """),
    ]

    @Test("The examples of FIPS 180-4 have the known digests", arguments: vectors)
    func knownDigests(vector: Vector) {
        #expect(hexadecimal(vector.algorithm.digest(of: vector.message)) == vector.digest)
    }

    /// The constants were computed with another implementation over the same bytes.
    @Test(
        "The digests of all messages of 0 to 400 bytes are correct",
        arguments: zip(
            Algorithm.allCases,
            [
                "23bed21d7383b2e22cc840ecf94aac0c19be3427052d53c3e83a111821d6e3f5",
                """
                aff69fc2d810c85c6a078c689affd4090dab0f2277f5d1c662a1ead8bf3187af\
                8c5f33b216ed68119124ad44dac016d1070a4d35cddcbe1e2c6337a1d69e4069
                """,
            ]))
    func everyLength(algorithm: Algorithm, expected: String) {
        let message = pattern(400)
        let digests = (0...400).flatMap { algorithm.digest(of: message.prefix($0)) }
        #expect(hexadecimal(algorithm.digest(of: digests)) == expected)
    }

    @Test("A digest can be updated after its value was read", arguments: Algorithm.allCases)
    func finalizingCopies(algorithm: Algorithm) {
        let message = pattern(300)
        var digest = RunningDigest(algorithm)
        for (index, byte) in message.enumerated() {
            #expect(digest.count == UInt64(index))
            #expect(digest.finalized() == algorithm.digest(of: message.prefix(index)))
            digest.update(CollectionOfOne(byte))
        }
        #expect(digest.algorithm == algorithm)
        #expect(digest.finalized().count == algorithm.digestSize)
    }

    @Test("Copies are independent of each other", arguments: Algorithm.allCases)
    func copies(algorithm: Algorithm) {
        var first = RunningDigest(algorithm)
        first.update(pattern(100))
        var second = first
        second.update([1])
        #expect(first.finalized() == algorithm.digest(of: pattern(100)))
        #expect(second.finalized() == algorithm.digest(of: pattern(100) + [1]))
    }

    @Test("Empty updates change nothing", arguments: Algorithm.allCases)
    func emptyUpdates(algorithm: Algorithm) {
        var digest = RunningDigest(algorithm)
        digest.update(UnsafeRawBufferPointer(start: nil, count: 0))
        digest.update(EmptyCollection())
        #expect(digest.count == 0)
        #expect(digest.finalized() == algorithm.digest(of: []))
    }

    @Test("MD5 has the values of RFC 1321")
    func md5() {
        #expect(MD5.digest(of: []).hexadecimal == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(MD5.digest(of: Array("message digest".utf8)).hexadecimal == "f96b697d7cb7938d525a2f31aaf161d0")
    }
}
