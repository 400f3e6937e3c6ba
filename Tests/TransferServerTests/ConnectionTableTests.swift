import TestSupport
import Testing

@testable import TransferServer

@Suite("Connections by client")
struct ConnectionTableTests {
    private static let second: Int64 = 1_000_000_000

    private struct Connection {
        let id: Int
        let client: ConnectionClient
        let since: Int64
        let bytes: Int64

        func rate(at now: Int64) -> Double { Double(bytes + 1024) / (Double(now - since) / 1e9 + 1) }
    }

    private func client(_ number: Int, isExempt: Bool = false) -> ConnectionClient {
        ConnectionClient("10.0.0.\(number)", isExempt: isExempt)
    }

    private func table(_ connections: [Connection]) -> ConnectionTable<Int> {
        var table = ConnectionTable<Int>()
        for connection in connections { table.insert(connection.id, of: connection.client, at: connection.since) }
        return table
    }

    private func decide(
        _ connections: [Connection], _ newClient: ConnectionClient, at now: Int64
    ) -> ConnectionTable<Int>.Decision {
        var table = table(connections)
        return table.makeRoom(for: newClient, at: now) { id in connections.first { $0.id == id }?.bytes ?? 0 }
    }

    @Test("the slowest connection of the client with the most connections is closed, even if others are slower")
    func largest() {
        let connections = [
            Connection(id: 1, client: client(1), since: 0, bytes: 0),
            Connection(id: 2, client: client(2), since: 0, bytes: 90_000),
            Connection(id: 3, client: client(2), since: 9 * Self.second, bytes: 30_000),
            Connection(id: 4, client: client(2), since: 0, bytes: 70_000),
        ]
        let now = 10 * Self.second
        #expect(decide(connections, client(1), at: now) == .close(4))
        #expect(decide(connections, client(3), at: now) == .close(4))
        #expect(decide(connections, client(3, isExempt: true), at: now) == .close(4))
        // The client with the most connections gets no further one: all of its connections are faster than a new one.
        #expect(decide(connections, client(2), at: now) == .reject)
    }

    @Test("a new connection of the client with the most connections can replace only a slower one of that client")
    func ownClient() {
        func connections(bytes: Int64) -> [Connection] {
            [
                Connection(id: 1, client: client(1), since: 0, bytes: 0),
                Connection(id: 2, client: client(2), since: 0, bytes: bytes),
                Connection(id: 3, client: client(2), since: 0, bytes: 1_000_000),
            ]
        }
        let now = 10 * Self.second
        #expect(decide(connections(bytes: 10 * 1024 - 1), client(2), at: now) == .close(2))
        #expect(decide(connections(bytes: 10 * 1024), client(2), at: now) == .reject)
        // A connection that was just opened is not closed for a connection that arrives at the same time.
        #expect(decide(connections(bytes: 0), client(2), at: 0) == .reject)
    }

    @Test(
        "if several clients have the same number of connections, including the new one, the connections of all of them are compared"
    )
    func ties() {
        let now = 10 * Self.second
        let each = (1...4).map {
            Connection(id: $0, client: client($0), since: 0, bytes: $0 == 3 ? 10 : 100_000)
        }
        #expect(decide(each, client(9), at: now) == .close(3))
        // With a second connection a client has the most connections, and its new connection is compared only with its
        // first connection.
        #expect(decide(each, client(3), at: now) == .close(3))
        #expect(decide(each, client(1), at: now) == .reject)
        let fast = (1...4).map { Connection(id: $0, client: client($0), since: 0, bytes: 100_000) }
        #expect(decide(fast, client(9), at: now) == .reject)
    }

    @Test("exempt connections are closed only if no others are open")
    func exempt() {
        let proxy = client(1, isExempt: true)
        let idle = (1...5).map { Connection(id: $0, client: proxy, since: 0, bytes: 0) }
        let now = 10 * Self.second
        let busy = Connection(id: 9, client: client(2), since: 0, bytes: 1_000_000)
        #expect(decide(idle + [busy], client(3), at: now) == .reject)
        #expect(decide(idle + [busy], proxy, at: now) == .close(9))
        let slow = Connection(id: 9, client: client(2), since: 0, bytes: 0)
        #expect(decide(idle + [slow], client(3), at: now) == .close(9))
        guard case .close = decide(idle, client(3), at: now) else {
            Issue.record("no exempt connection was closed")
            return
        }
        guard case .close = decide(idle, proxy, at: now) else {
            Issue.record("no exempt connection was closed")
            return
        }
    }

    @Test("a connection that transfers a request of another client is counted for that client from that request on")
    func moved() {
        var table = ConnectionTable<Int>()
        let proxy = client(1, isExempt: true)
        for id in 1...4 { table.insert(id, of: proxy, at: 0) }
        let (slow, other) = (client(2), client(3))
        // Connection 1 transferred many bytes for earlier requests; they do not count for this client.
        table.move(1, to: slow, at: 100 * Self.second, bytes: 5_000_000)
        table.move(2, to: slow, at: 100 * Self.second, bytes: 0)
        table.move(3, to: other, at: 100 * Self.second, bytes: 0)
        table.move(77, to: other, at: 0, bytes: 0)
        #expect(table.count == 4)
        #expect(table.largestClient?.count == 2)
        let decision = table.makeRoom(for: other, at: 110 * Self.second) { $0 == 1 ? 5_000_001 : 2000 }
        #expect(decision == .close(1))
        table.move(2, to: proxy, at: 111 * Self.second, bytes: 2000)
        #expect(table.makeRoom(for: proxy, at: 112 * Self.second) { _ in 0 } == .close(3))
        for id in [2, 4, 4, 99] { table.remove(id) }
        #expect(table.count == 0 && table.largestClient == nil)
        #expect(table.makeRoom(for: other, at: 0) { _ in 0 } == .reject)
    }

    @Test(
        "the decision equals the result of a comparison of all connections",
        arguments: [1, 2, 3, 20_261_122] as [UInt64])
    func generated(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            let clients = Int.random(in: 1...5, using: &random)
            let now = Int64.random(in: 1...100, using: &random) * Self.second
            let connections = (0..<Int.random(in: 1...12, using: &random)).map { id in
                Connection(
                    id: id,
                    client: client(
                        Int.random(in: 1...clients, using: &random),
                        isExempt: Int.random(in: 0...3, using: &random) == 0),
                    since: Int64.random(in: 0...now, using: &random),
                    bytes: Bool.random(using: &random) ? 0 : Int64.random(in: 0...200_000, using: &random))
            }
            let newClient = client(
                Int.random(in: 1...6, using: &random), isExempt: Int.random(in: 0...3, using: &random) == 0)
            let expected = expected(connections, newClient, at: now)
            #expect(
                decide(connections, newClient, at: now) == expected,
                "seed \(seed): \(connections), \(newClient) at \(now)")
        }
    }

    /// The decision according to the documented rule, computed from all connections.
    private func expected(
        _ connections: [Connection], _ newClient: ConnectionClient, at now: Int64
    ) -> ConnectionTable<Int>.Decision {
        let others = connections.filter { !$0.client.isExempt }
        let closable = others.isEmpty ? connections : others
        let new = Connection(id: -1, client: newClient, since: now, bytes: 0)
        let all = closable + (newClient.isExempt && !others.isEmpty ? [] : [new])
        let counts = Dictionary(all.map { ($0.client, 1) }, uniquingKeysWith: +)
        let largest = counts.values.max()
        let slowest = all.filter { counts[$0.client] == largest }.min {
            // If the new connection is as slow as another one, the new connection is rejected.
            ($0.rate(at: now), $0.id) < ($1.rate(at: now), $1.id)
        }
        return slowest.map { $0.id == -1 ? .reject : .close($0.id) } ?? .reject
    }

    @Test("a slow client that reconnects all the time displaces no other client, and few connections are measured")
    func attack() {
        var random = SeededGenerator(seed: 7)
        var table = ConnectionTable<Int>()
        var bytes: [Int: Int64] = [:]
        var next = 0
        var now: Int64 = 0
        var attacking: [Int] = []
        var measured = 0
        func open(_ client: ConnectionClient) -> Int? {
            next += 1
            if table.count >= 1000 {
                let decision = table.makeRoom(for: client, at: now) {
                    measured += 1
                    return bytes[$0] ?? 0
                }
                guard case .close(let id) = decision else { return nil }
                #expect(bytes[id] != nil, "the closed connection was open")
                bytes[id] = nil
            }
            table.insert(next, of: client, at: now)
            bytes[next] = 0
            return next
        }
        let uploads = (2...9).compactMap { open(client($0)) }
        var decisions = 0
        for step in 0..<3000 {
            now += 20_000_000
            decisions += 1
            if let id = open(client(1)) { attacking.append(id) }
            // The attacker sends some bytes now and then on any of its connections.
            if let id = attacking.randomElement(using: &random), bytes[id] != nil { bytes[id, default: 0] += 200 }
            for id in uploads where bytes[id] != nil { bytes[id, default: 0] += 200 }
            if step % 100 == 99 {
                decisions += 1
                let id = open(client(10 + step / 100 % 90))
                #expect(id != nil, "the connection of another client is accepted")
                if let id {
                    table.remove(id)
                    bytes[id] = nil
                }
            }
        }
        #expect(uploads.allSatisfy { bytes[$0] != nil })
        #expect(bytes.count <= 1000 && table.count == bytes.count)
        #expect(measured < 10 * decisions, "\(measured) of \(decisions) decisions")
    }
}
