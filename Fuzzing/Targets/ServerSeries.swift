import SystemCalls

/// A series of servers, each for some hundred inputs, so that directories stay small. Inputs are processed one at a time.
final class ServerSeries: Sendable {
    private static let inputsPerServer = 400
    private let isGuarded: Bool
    private let current = Monitor<ServerUnderTest?>(nil)

    init(isGuarded: Bool) { self.isGuarded = isGuarded }

    func process(_ input: [UInt8]) throws(Violation) {
        try current.withLock { server throws(Violation) in
            if let used = server, used.count >= Self.inputsPerServer {
                server = nil
                try used.end()
            }
            if server == nil {
                do { server = try ServerUnderTest(isGuarded: isGuarded) } catch {
                    throw Violation("no server can be started: \(error)")
                }
            }
            try server?.process(input)
        }
    }

    func end() throws(Violation) {
        try current.withLock { server throws(Violation) in
            defer { server = nil }
            try server?.end()
        }
    }
}
