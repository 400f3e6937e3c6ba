import TestSupport

extension FuzzTarget {
    /// An input is the bytes that a client sends to a server without tokens. Every program on this machine may use such
    /// a server.
    ///
    /// The check: the server responds with HTTP/1.1 and closes the connection, serves later connections, accesses
    /// nothing outside its root, and publishes nothing of an incomplete upload.
    static let server = FuzzTarget(
        name: "server", maxLength: 8192, dictionary: RequestText.dictionary,
        seeds: { generator in serverSeeds(&generator, tokens: [nil]) },
        check: { input throws(Violation) in try open.process(Array(input)) })

    /// An input is the bytes that a client sends to a server with tokens. The seeds contain only one valid token; it
    /// allows reading.
    static let guardedServer = FuzzTarget(
        name: "guarded-server", maxLength: 8192, dictionary: RequestText.dictionary + [ServerUnderTest.readerToken],
        seeds: { generator in
            serverSeeds(&generator, tokens: [nil, "no-token-of-this-server", ServerUnderTest.readerToken])
        },
        check: { input throws(Violation) in try guarded.process(Array(input)) })

    private static let open = ServerSeries(isGuarded: false)
    private static let guarded = ServerSeries(isGuarded: true)

    /// Stops the server of this target; the next input starts a new server.
    static func endServer(of target: FuzzTarget) throws(Violation) {
        try (target.name == server.name ? open : guarded).end()
    }

    private static func serverSeeds(_ generator: inout SeededGenerator, tokens: [String?]) -> [[UInt8]] {
        let plain = tokens.flatMap { RequestText.plainRequests(token: $0) }.map { Array($0.utf8) }
        return plain
            + (0..<300).map { index in
                let requests = (0..<generator.pick([1, 1, 1, 2, 3])).map { _ in
                    RequestText.request(&generator, token: generator.pick(tokens))
                }
                var bytes = Array(requests.joined().utf8)
                for _ in 0..<generator.pick([0, 0, 1, 3]) {
                    bytes.insert(WireConversation.separator, at: Int.random(in: 0...bytes.count, using: &generator))
                }
                return index % 5 == 0 ? Array(bytes.dropLast(Int.random(in: 0...20, using: &generator))) : bytes
            }
    }
}
