import Glibc
import SystemCalls

/// A proxy of TCP connections to a server on the loopback interface. It breaks connections at the points that a test
/// chooses, and counts bytes. It can also simulate a network or a server that fails for some time, and distribute
/// connections to several servers.
package final class FaultProxy: Sendable {
    package enum Direction: Sendable, CaseIterable { case toServer, toClient }

    /// The state of the network between client and server, for all connections.
    package enum Network: Sendable, Hashable {
        case open
        /// All connections were reset, and new ones are reset at once.
        case cut
        /// Nothing is passed on in these directions, and the connections stay open. The bytes and ends that have arrived
        /// meanwhile are passed on as soon as the network is open.
        case stalled(Set<Direction>)
        /// Each part of a message is passed on after this time.
        case delayed(Duration)
        /// A request reaches the server, but one of this number of responses is lost: its connection is reset instead.
        case losingResponses(oneIn: Int)
        /// The proxy sends this text and an end instead of passing a request on.
        case responding(String)
    }

    /// A fault of a connection after a number of bytes in one direction.
    package struct Fault: Sendable {
        package enum Kind: Sendable {
            /// The proxy resets both sides (RST).
            case reset
            /// The proxy closes the connection in order, as some proxies do.
            case end
            /// The proxy passes on nothing more in this direction, and keeps the connection open.
            case stall
        }

        package var kind: Kind
        package var direction: Direction
        package var after: Int
        /// The number of bytes in the other direction after which the connection is reset if the fault has not occurred
        /// before; `nil` for no limit.
        package var maxBytes: Int?

        package init(kind: Kind = .reset, direction: Direction, after: Int, maxBytes: Int? = nil) {
            self.kind = kind
            self.direction = direction
            self.after = after
            self.maxBytes = maxBytes
        }
    }

    private struct State {
        var faults = 0
        var connections = 0
        var passed: [Direction: Int64] = [:]
        var last = Direction.toClient
        var roundTrips = 0
        var lost = 0
        var network = Network.open
        /// Both sides of the connections, by their numbers.
        var open: [Int: [FileDescriptor]] = [:]

        func isPassing(_ direction: Direction) -> Bool {
            if case .stalled(let directions) = network { !directions.contains(direction) } else { true }
        }

        /// Records a part of a message.
        /// - Parameter isResponse: whether it is the first part of a response.
        mutating func step(_ direction: Direction, _ count: Int, isResponse: Bool) -> Step {
            if last == .toClient, direction == .toServer { roundTrips += 1 }
            last = direction
            switch network {
            case .responding(let text) where direction == .toServer: return .respond(text)
            case .losingResponses(let number) where isResponse:
                lost += 1
                if lost.isMultiple(of: number) { return .reset }
            case .delayed(let delay):
                passed[direction, default: 0] += Int64(count)
                return .pass(after: delay)
            default: break
            }
            passed[direction, default: 0] += Int64(count)
            return .pass(after: .zero)
        }
    }

    private enum Step {
        case pass(after: Duration)
        case reset
        case respond(String)
    }

    private let listener: LoopbackListener
    private let state: Monitor<State>

    /// - Parameter fault: returns the fault of the next connection; `nil` for no fault.
    package convenience init(to server: UInt16, fault: @escaping @Sendable () -> Fault? = { nil }) throws {
        try self.init(toEach: [server], fault: fault)
    }

    /// Passes each connection on to the next of several servers that accepts it.
    /// - Parameter passes: whether a part of a message is passed on; otherwise its connection is reset.
    package init(
        toEach servers: [UInt16], fault: @escaping @Sendable () -> Fault? = { nil },
        passes: @escaping @Sendable () -> Bool = { true }
    ) throws {
        let state = Monitor(State())
        self.state = state
        listener = try LoopbackListener("fault-proxy") { client, number in
            state.withLock { $0.connections += 1 }
            guard let server = Self.connect(toOneOf: servers, first: number % servers.count) else { return }
            let isCut = state.withLock { state in
                state.open[number] = [client, server]
                return state.network == .cut
            }
            defer { state.withLock { $0.open[number] = nil } }
            if isCut {
                LoopbackListener.reset(client)
            } else {
                Self.serve(client, server, fault(), passes, state)
            }
        }
    }

    deinit { set(.cut) }

    /// Changes the state of the network.
    package func set(_ network: Network) {
        let cut = state.withLock { state in
            state.network = network
            return network == .cut ? state.open.values.flatMap { $0 } : []
        }
        for connection in cut { LoopbackListener.reset(connection) }
        state.notifyAll()
    }

    /// Breaks every connection after a random number of bytes in the range `bytes`, in a random direction.
    package convenience init(
        to server: UInt16, seed: UInt64, bytes: ClosedRange<Int> = 1...(4 << 20), kinds: [Fault.Kind] = [.reset],
        directions: [Direction] = [.toServer]
    ) throws {
        let random = Monitor(SeededGenerator(seed: seed))
        try self.init(to: server) {
            random.withLock { random in
                guard let kind = kinds.randomElement(using: &random),
                    let direction = directions.randomElement(using: &random)
                else { return nil }
                return Fault(kind: kind, direction: direction, after: .random(in: bytes, using: &random))
            }
        }
    }

    /// Resets connections.
    /// - Parameter nextCut: the number of bytes to the server after which the next connection is reset; `nil` for no
    ///   reset.
    package convenience init(upstream: UInt16, nextCut: @escaping @Sendable () -> Int?) throws {
        try self.init(to: upstream) { nextCut().map { Fault(direction: .toServer, after: $0) } }
    }

    package var port: UInt16 { listener.port }
    package var url: String { "http://127.0.0.1:\(port)" }
    /// The number of broken connections.
    package var cuts: Int { state.withLock { $0.faults } }
    package var connections: Int { state.withLock { $0.connections } }
    /// The number of times that bytes to the server followed bytes from the server, over all connections.
    package var roundTrips: Int { state.withLock { $0.roundTrips } }
    package var bytesToServer: Int64 { state.withLock { $0.passed[.toServer] ?? 0 } }
    package var bytesToClient: Int64 { state.withLock { $0.passed[.toClient] ?? 0 } }

    private static func connect(toOneOf servers: [UInt16], first: Int) -> FileDescriptor? {
        for server in servers[first...] + servers[..<first] {
            if let connection = try? LoopbackListener.connect(to: server) { return connection }
        }
        return nil
    }

    private static func serve(
        _ client: FileDescriptor, _ server: FileDescriptor, _ fault: Fault?,
        _ passes: @escaping @Sendable () -> Bool, _ state: Monitor<State>
    ) {
        // The direction of the last part of a message on this connection.
        let last = Monitor(Direction.toClient)
        let back = try? WorkerThread(name: "fault-proxy") {
            pass(.toClient, from: server, to: client, fault, passes, last, state)
        }
        pass(.toServer, from: client, to: server, fault, passes, last, state)
        back?.join()
    }

    private static func pass(
        _ direction: Direction, from source: FileDescriptor, to destination: FileDescriptor, _ fault: Fault?,
        _ passes: @Sendable () -> Bool, _ last: Monitor<Direction>, _ state: Monitor<State>
    ) {
        let isAwaited = fault?.direction == direction
        var left = isAwaited ? fault?.after : fault?.maxBytes
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(source.rawValue, &buffer, min(buffer.count, left ?? .max), 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                state.waitForever { $0.isPassing(direction) ? () : nil }
                // A reset is passed on as a reset, an end as an end.
                if count < 0 { LoopbackListener.reset(destination) }
                shutdown(destination.rawValue, Int32(SHUT_WR))
                return
            }
            let isResponse = last.withLock { last in
                defer { last = direction }
                return last == .toServer && direction == .toClient
            }
            let step = state.waitForever {
                $0.isPassing(direction) ? $0.step(direction, count, isResponse: isResponse) : nil
            }
            switch passes() ? step : .reset {
            case .pass(let delay): SystemClock.pause(nanoseconds: delay.nanoseconds)
            case .reset:
                LoopbackListener.reset(source)
                LoopbackListener.reset(destination)
                return
            case .respond(let text):
                _ = send(ArraySlice(text.utf8), to: source)
                shutdown(source.rawValue, Int32(SHUT_WR))
                while recv(source.rawValue, &buffer, buffer.count, 0) > 0 {}
                LoopbackListener.reset(destination)
                return
            }
            guard send(buffer[..<count], to: destination) else {
                LoopbackListener.reset(source)
                return
            }
            guard let remaining = left.map({ $0 - count }) else { continue }
            left = remaining
            guard remaining <= 0, let fault else { continue }
            state.withLock { $0.faults += 1 }
            switch isAwaited ? fault.kind : .reset {
            case .end:
                shutdown(destination.rawValue, Int32(SHUT_WR))
                LoopbackListener.reset(source)
            case .reset:
                LoopbackListener.reset(source)
                LoopbackListener.reset(destination)
            case .stall:
                LoopbackListener.awaitEnd(of: source, within: .seconds(60))
                LoopbackListener.reset(destination)
            }
            return
        }
    }

    private static func send(_ bytes: ArraySlice<UInt8>, to destination: FileDescriptor) -> Bool {
        var remaining = bytes
        while !remaining.isEmpty {
            let count = remaining.withUnsafeBytes {
                Glibc.send(destination.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 { remaining = remaining.dropFirst(count) } else if errno != EINTR { return false }
        }
        return true
    }
}
