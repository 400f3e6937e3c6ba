import SystemCalls

/// Forwards connections from a port of 127.0.0.1 to another one, counts round trips, and can stop forwarding.
package final class NetworkRelay: Sendable {
    package enum Mode: Sendable, Equatable {
        case forward
        /// The bytes that arrive are kept, in both directions, and no connection is closed.
        case partition
        /// Only the bytes from the server are kept.
        case holdResponses
        /// Connections end at once.
        case refuse
    }

    private struct State {
        var mode = Mode.forward
        var isClosed = false
        var lastWasResponse = true
        var roundTrips = 0
    }

    package let port: UInt16
    private let upstreamPort: UInt16
    private let state = Monitor(State())

    package init(to upstreamPort: UInt16) throws {
        self.upstreamPort = upstreamPort
        let listener = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        guard case .tcp(_, let port) = listener.address else { throw TestFailure("no port") }
        self.port = port
        let descriptor = FileDescriptor(owning: listener.release())
        let state = state
        _ = try WorkerThread(name: "relay") {
            while !state.withLock({ $0.isClosed }) {
                let limit = SystemClock.deadline(in: .milliseconds(50))
                guard let client = try? ConnectedSocket.accept(from: descriptor, until: limit) else { continue }
                let deadline = SystemClock.deadline(in: .seconds(5))
                guard state.withLock({ $0.mode != .refuse }),
                    let server = try? ConnectedSocket(.tcp(host: "127.0.0.1", port: upstreamPort), until: deadline)
                else { continue }
                _ = try? WorkerThread(name: "relay-up") { Self.forward(client, server, isResponse: false, state) }
                _ = try? WorkerThread(name: "relay-down") { Self.forward(server, client, isResponse: true, state) }
            }
        }
    }

    deinit { close() }

    /// Ends all connections.
    package func close() {
        state.withLock { $0.isClosed = true }
        state.notifyAll()
    }

    package var mode: Mode {
        get { state.withLock { $0.mode } }
        set {
            state.withLock { $0.mode = newValue }
            state.notifyAll()
        }
    }

    /// How often bytes to the server followed bytes from the server, over all connections.
    package var roundTrips: Int { state.withLock { $0.roundTrips } }

    private static func forward(
        _ source: ConnectedSocket, _ target: ConnectedSocket, isResponse: Bool, _ state: Monitor<State>
    ) {
        defer {
            source.endOutput()
            target.endOutput()
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { buffer.deallocate() }
        while !state.withLock({ $0.isClosed || $0.mode == .refuse }) {
            let count: Int
            do throws(Errno) {
                count = try source.receive(into: buffer, until: SystemClock.deadline(in: .milliseconds(50)))
            } catch {
                if error == .timedOut { continue }
                return
            }
            // An end arrives only after the bytes before it.
            let isOpen = state.waitForever { state -> Bool? in
                if state.isClosed || state.mode == .refuse { return false }
                if state.mode == .partition || (isResponse && state.mode == .holdResponses) { return nil }
                if state.lastWasResponse && !isResponse { state.roundTrips += 1 }
                state.lastWasResponse = isResponse
                return true
            }
            guard isOpen, count > 0 else { return }
            var bytes = ArraySlice(buffer[..<count])
            while !bytes.isEmpty {
                guard let sent = try? target.send(bytes, until: SystemClock.deadline(in: .seconds(60))) else { return }
                bytes = bytes.dropFirst(sent)
            }
        }
    }
}
