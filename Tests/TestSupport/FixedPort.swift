import SystemCalls

/// Ports for programs that have to be told theirs, or that have to come back to it.
///
/// They are none of those that the system gives to outgoing connections, or to whoever asks for any port: one of these
/// could be gone between two binds.
package enum FixedPort {
    private static let taken = Monitor<Set<UInt16>>([])

    /// One on which nobody listens, given to one caller alone.
    package static func next() throws -> UInt16 {
        for _ in 0..<1000 {
            let port = UInt16.random(in: 12_000...19_999)
            guard taken.withLock({ $0.insert(port).inserted }),
                let socket = try? ListeningSocket(.tcp(host: "127.0.0.1", port: port))
            else { continue }
            _ = FileDescriptor(owning: socket.release())
            return port
        }
        throw TestFailure("no free port")
    }
}
