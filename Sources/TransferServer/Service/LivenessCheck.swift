import SystemCalls
import UploadStorage

/// Finds out whether a server is still at work, for a watchdog that would start it again.
///
/// A server is stuck when nobody is let in any more, because no thread accepts or no descriptor is left, or when its store
/// has come to a halt, so that nothing is ever acknowledged. A disk that refuses is no reason: a restart would end the
/// downloads that still work, and mend nothing.
package final class LivenessCheck: Sendable {
    private let addresses: [SocketAddress]
    private let store: UploadStore
    /// Addresses that could not be reached from here at the start, and are not looked at for that: a socket in the file
    /// system whose owner is another user, one that is bound to a network device, a firewall.
    package let unreachable: [SocketAddress]

    /// - Parameters:
    ///   - addresses: where the server listens, already.
    ///   - deadline: monotonic nanoseconds; what does not react by then counts as unreachable.
    package init(addresses: [SocketAddress], store: UploadStore, until deadline: Int64) {
        self.store = store
        let reachable = addresses.filter { Self.canConnect($0, until: deadline) }
        self.addresses = reachable
        unreachable = addresses.filter { !reachable.contains($0) }
    }

    /// What the store says of itself, where connections are taken at every address and the store does what it is asked, by
    /// the deadline (monotonic nanoseconds); nil: the server is stuck, as it is when a check of the disk does not return.
    package func health(until deadline: Int64) -> Health? {
        guard addresses.allSatisfy({ Self.canConnect($0, until: deadline) }), store.isAtWork(until: deadline) else {
            return nil
        }
        return store.health(until: deadline)
    }

    /// Whether a connection that says nothing and ends gets a thread, which closes it. No request is made, and none logged;
    /// with TLS it ends in the same way.
    private static func canConnect(_ address: SocketAddress, until deadline: Int64) -> Bool {
        do throws(Errno) {
            let connection = try ConnectedSocket(address, until: deadline)
            connection.endOutput()
            var bytes: (UInt64, UInt64) = (0, 0)
            while true {
                let count = try withUnsafeMutableBytes(of: &bytes) { (buffer) throws(Errno) in
                    try connection.receive(into: buffer, until: deadline)
                }
                if count == 0 { return true }
            }
        } catch {
            // There are too many connections: it was accepted, and sent away.
            return error == .connectionReset || error == .brokenPipe
        }
    }
}
