import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite(
    "Downloads from a server with an object storage", .blocking,
    .enabled(if: PostgreSQLCluster.isRequired && SeaweedFS.isRequired, "takes long: make test-scale runs it"))
struct ClusterDownloadTests {
    private static let content = BytePool.repeated(0..<100_000_000)

    /// Clients that read 10 KB/s each, on one thread.
    private final class SlowReaders: Sendable {
        private struct State {
            /// The bytes that each client has received.
            var received: [Int]
            var mistakes: [String] = []
            var isClosed = false
        }

        private let state: Monitor<State>
        private let thread: WorkerThread

        init(_ count: Int, of path: String, from port: UInt16) throws {
            let connections = try (0..<count).map { _ in try LoopbackListener.connect(to: port, receiveBuffer: 16 << 10)
            }
            let request = Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
            for connection in connections {
                guard Glibc.send(connection.rawValue, request, request.count, Int32(MSG_NOSIGNAL)) == request.count
                else {
                    throw Errno.current
                }
            }
            let state = Monitor(State(received: connections.map { _ in 0 }))
            self.state = state
            thread = try WorkerThread(name: "slow-readers") {
                // The number of bytes of each head; nil until it has arrived.
                var heads: [Int?] = connections.map { _ in nil }
                var prefixes: [[UInt8]] = connections.map { _ in [] }
                var buffer = [UInt8](repeating: 0, count: 1000)
                while !state.withLock({ $0.isClosed }) {
                    for (index, connection) in connections.enumerated() {
                        let count = recv(connection.rawValue, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                        if count < 0, errno == EAGAIN { continue }
                        guard count > 0 else {
                            state.withLock { $0.mistakes.append("the connection \(index) has ended") }
                            return
                        }
                        prefixes[index] += buffer[..<count]
                        guard let head = heads[index] ?? Self.headCount(prefixes[index]) else { continue }
                        heads[index] = head
                        let body = prefixes[index].dropFirst(head)
                        if !areEqual(body, ClusterDownloadTests.content.prefix(body.count)) {
                            state.withLock { $0.mistakes.append("the connection \(index) has other bytes") }
                        }
                        state.withLock { $0.received[index] = body.count }
                    }
                    state.notifyAll()
                    SystemClock.pause(nanoseconds: 100_000_000)
                }
            }
        }

        private static func headCount(_ bytes: [UInt8]) -> Int? {
            let end = Array("\r\n\r\n".utf8)
            return bytes.indices.first { bytes[$0...].starts(with: end) }.map { $0 + end.count }
        }

        /// Waits until each client has received `count` bytes.
        func await(_ count: Int) -> Bool {
            state.wait(until: SystemClock.deadline(in: .seconds(300))) { state in
                state.received.allSatisfy { $0 >= count } || !state.mistakes.isEmpty ? true : nil
            } ?? false
        }

        func close() -> [String] {
            state.withLock { $0.isClosed = true }
            thread.join()
            return state.withLock { $0.mistakes }
        }
    }

    @Test("64 slow downloads need bounded memory, and a fast one beside them ends")
    func slowDownloads() throws {
        try withCluster(1, ["--idle-timeout", "1h"]) { cluster in
            let node = cluster.nodes[0]
            let stored = try node.exchange(Request("PUT", "/files/f", [], .bytes(Self.content)), within: .seconds(300))
            #expect(stored.status == 201)
            func download() throws -> Duration {
                let start = ContinuousClock.now
                let response = try node.exchange(.get("/files/f"), within: .seconds(300))
                #expect(response.status == 200 && areEqual(response.content, Self.content))
                return ContinuousClock.now - start
            }
            let alone = try download()
            let before = try #require(node.process.peakResidentBytes())
            let slow = try SlowReaders(64, of: "/files/f", from: node.port)
            #expect(slow.await(20_000))
            let beside = try (0..<2).map { _ in try download() }
            #expect(slow.await(60_000))
            let mistakes = slow.close()
            #expect(mistakes.isEmpty, "\(mistakes)")
            let after = try #require(node.process.peakResidentBytes())
            print(
                "64 slow downloads: peak memory \(before >> 20) MiB before, \(after >> 20) MiB after; "
                    + "a fast download needs \(alone) alone, \(beside) beside them")
            // The buffers for the storage have at most 256 MiB.
            #expect(after < before + (400 << 20))
        }
    }
}
