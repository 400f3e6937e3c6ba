import SystemCalls
import UploadStorage

/// Checks whether a server still works, for a watchdog that would restart it.
///
/// A server is stuck if it accepts no connections, because no thread or descriptor is available, or if its store does
/// not make progress. With a failing disk or a shared storage that does not respond the server is not stuck: a restart
/// would end downloads that still work, and would not repair the disk or the storage.
package final class LivenessCheck: Sendable {
    private let addresses: [SocketAddress]
    private let store: UploadStore
    /// Addresses to which this process could not connect at the start. They are not checked. Possible reasons are a
    /// socket file of another user, a socket bound to a network device, or a firewall.
    package let unreachable: [SocketAddress]

    /// - Parameters:
    ///   - addresses: the addresses on which the server listens already.
    ///   - deadline: monotonic nanoseconds; addresses that do not accept a connection before it are unreachable.
    package init(addresses: [SocketAddress], store: UploadStore, until deadline: Int64) {
        self.store = store
        let reachable = addresses.filter { Self.canConnect($0, until: deadline) }
        self.addresses = reachable
        unreachable = addresses.filter { !reachable.contains($0) }
    }

    /// Returns the health of the store if all addresses accept connections and the store responds before the deadline
    /// (monotonic nanoseconds); otherwise `nil`, because the server is stuck.
    package func health(until deadline: Int64) -> Health? {
        guard addresses.allSatisfy({ Self.canConnect($0, until: deadline) }) else { return nil }
        return store.liveHealth(until: deadline)
    }

    /// Whether the server accepts and closes a connection that sends nothing. No request is made or logged, with or
    /// without TLS.
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
            // If there are too many connections, the server accepts this one and closes it immediately.
            return error == .connectionReset || error == .brokenPipe
        }
    }
}
