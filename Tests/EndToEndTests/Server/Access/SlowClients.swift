import ConformanceKit
import SystemCalls

/// Connections from 127.0.0.1 that transfer almost nothing, and are opened again when the server closes them. They end
/// with this object.
final class SlowClients: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        /// The connections send nothing.
        case silent
        /// The connections send a head byte by byte.
        case heads
        /// The connections send content byte by byte.
        case content
        /// The connections request `/files/big` and read almost nothing of it.
        case readers
    }

    private struct State {
        var isStopped = false
        var opened = 0
    }

    private let state = Monitor(State())
    private let thread: WorkerThread

    /// - Parameter fields: the fields of the request with this number.
    init(
        _ kind: Kind, count: Int, port: UInt16,
        fields: @escaping @Sendable (_ number: Int) -> [(String, String)] = { _ in [] }
    ) throws {
        let state = state
        thread = try WorkerThread(name: "slow-clients") {
            var connections: [RawConnection] = []
            var number = 0
            while !state.withLock({ $0.isStopped }) {
                connections.removeAll { (try? Self.sendNext(kind, $0)) == nil }
                for _ in connections.count..<count {
                    number += 1
                    guard let connection = try? Self.begin(kind, port, fields(number)) else { continue }
                    connections.append(connection)
                    state.withLock { $0.opened += 1 }
                }
                Deadline.pause(.milliseconds(50))
            }
        }
    }

    deinit {
        state.withLock { $0.isStopped = true }
        thread.join()
    }

    /// The number of connections opened so far.
    var opened: Int { state.withLock { $0.opened } }

    private static func begin(_ kind: Kind, _ port: UInt16, _ fields: [(String, String)]) throws -> RawConnection {
        let connection = try RawConnection(port: port, receiveBuffer: kind == .readers ? 2048 : nil)
        switch kind {
        case .silent: break
        case .heads: try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Filler: ")
        case .content:
            // The next connection is opened after the server has read the head, which contains the address of the
            // client.
            let fields = fields + [("Expect", "100-continue")]
            try connection.send(Request("PUT", "/files/slow", fields, .declared(100_000)))
            _ = try connection.requireInterim(within: .seconds(10))
        case .readers: try connection.send(Request("GET", "/files/big", fields))
        }
        return connection
    }

    private static func sendNext(_ kind: Kind, _ connection: RawConnection) throws {
        switch kind {
        case .silent, .readers:
            guard !connection.isClosedByPeer else { throw WireFailure.reset("by the peer") }
        case .heads, .content: try connection.send([0x61])
        }
    }
}
