// Internals of the server can be imported only in debug builds.
#if DEBUG
    import Glibc
    import HTTPSemantics
    import SystemCalls

    @testable import TransferServer

    /// A daemon in this process, with libmicrohttpd and the receive filter as the server uses them. It records all requests
    /// and answers each with 204.
    final class RecordingDaemon: MinimalRequestService {
        private let received = Monitor<[ReferenceReading.Request]>([])
        private let contentCalls = Monitor(0)
        private let daemon = Monitor<MicroHTTPDaemon?>(nil)

        init() throws {
            let registry = ConnectionRegistry(
                timeouts: ConnectionTimeouts(header: 60_000_000_000, idle: 60_000_000_000), capacity: 1000)
            let started = MicroHTTPDaemon(service: self, registry: registry, credentials: nil)
            try started.start(on: nil, options: MicroHTTPDaemon.Options(maxConnections: 1000))
            daemon.withLock { $0 = started }
        }

        func stop() { daemon.withLock { $0?.stop() } }

        /// The requests and the answers of one connection.
        struct Outcome {
            var requests: [ReferenceReading.Request]
            var answer: [UInt8]
            /// The number of calls with which libmicrohttpd delivered content.
            var contentCalls: Int
        }

        /// Sends bytes in pieces that end at `cuts`, ends the output, and reads the answers to their end.
        func exchange(_ traffic: GeneratedTraffic) throws -> Outcome {
            received.withLock { $0 = [] }
            contentCalls.withLock { $0 = 0 }
            let (client, server) = try ConnectedSocket.pair()
            let deadline = SystemClock.monotonicNanoseconds() + 60_000_000_000
            let descriptor = client.rawValue
            try daemon.withLock { try $0?.add(server) }
            var start = 0
            for end in traffic.cuts + [traffic.bytes.count] where end > start {
                var remaining = traffic.bytes[start..<end]
                while !remaining.isEmpty {
                    // The server ends the connection after a refusal.
                    guard let count = try? client.send(remaining, until: deadline) else { break }
                    remaining = remaining.dropFirst(count)
                }
                start = end
                for _ in 0..<500 where SocketState(descriptor: descriptor).unacknowledgedOutput ?? 0 > 0 {
                    sched_yield()
                }
            }
            client.endOutput()
            var answer: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 16 << 10)
            while true {
                do {
                    let count = try buffer.withUnsafeMutableBytes { try client.receive(into: $0, until: deadline) }
                    if count == 0 { break }
                    answer += buffer[..<count]
                } catch let error as Errno where error == .connectionReset {
                    // The server need not read after a request that closes the connection.
                    break
                }
            }
            return Outcome(
                requests: received.withLock { $0 }, answer: answer, contentCalls: contentCalls.withLock { $0 })
        }

        // MARK: - RequestService

        func begin(_ request: RequestContext, for target: RequestTarget) -> RequestStep {
            let recorded = RecordedExchange(request.head) { request, calls in
                self.received.withLock { $0.append(request) }
                self.contentCalls.withLock { $0 += calls }
            }
            return .receive(recorded)
        }

        private final class RecordedExchange: Exchange {
            private let head: RequestHead
            private let record: (ReferenceReading.Request, Int) -> Void
            private var content: [UInt8] = []
            private var calls = 0

            init(_ head: RequestHead, _ record: @escaping (ReferenceReading.Request, Int) -> Void) {
                (self.head, self.record) = (head, record)
            }

            func receive(_ bytes: UnsafeRawBufferPointer) -> RequestStep? {
                content += bytes
                calls += 1
                return nil
            }

            func finish() -> RequestStep {
                record(.init(method: head.method.rawValue, target: head.target, content: content), calls)
                return .respond(Response(status: 204))
            }

            func end(_ end: RequestEnd) {}
        }
    }

    /// One comparison of the server with the reference.
    enum DifferentialCase {
        /// - Returns: a description of the difference; `nil` if there is no difference.
        static func difference(_ traffic: GeneratedTraffic, _ daemon: RecordingDaemon) throws -> String? {
            let expected = ReferenceReading(traffic.bytes)
            let outcome = try daemon.exchange(traffic)
            guard outcome.requests == expected.requests else {
                return "the server handled \(outcome.requests), expected \(expected.requests)"
            }
            var remaining = String(decoding: outcome.answer, as: UTF8.self)[...]
            for _ in expected.requests {
                guard let head = takeHead(&remaining),
                    head.hasPrefix("HTTP/1.1 204 ") || head.hasPrefix("HTTP/1.0 204 ")
                else {
                    return "the answers are \(String(decoding: outcome.answer, as: UTF8.self).debugDescription)"
                }
            }
            if expected.ending != .fault || remaining.isEmpty {
                if remaining.isEmpty && expected.ending == .fault { return "a fault was not refused" }
                return remaining.isEmpty
                    ? nil : "after \(expected.requests.count) answers follows \(remaining.debugDescription)"
            }
            return differenceOfRefusal(remaining)
        }

        /// Checks that the answer to a fault is one problem document with a code and the end of the connection.
        private static func differenceOfRefusal(_ text: Substring) -> String? {
            var remaining = text
            let statuses = [400, 413, 414, 431, 501, 505]
            guard let head = takeHead(&remaining), let status = Int(head.dropFirst(9).prefix(3)),
                statuses.contains(status),
                head.contains("\r\nConnection: close\r\n"), head.contains("Content-Type: application/problem+json\r\n"),
                remaining.isEmpty
                    || (remaining.hasPrefix("{") && remaining.contains("\"code\":\"")) && remaining.hasSuffix("}"),
                head.contains("Content-Length: \(remaining.utf8.count)\r\n") || remaining.isEmpty
            else { return "the refusal is \(text.debugDescription)" }
            return nil
        }

        /// Removes and returns a head; the empty line after it is removed, too.
        private static func takeHead(_ text: inout Substring) -> Substring? {
            guard let end = text.range(of: "\r\n\r\n") else { return nil }
            defer { text = text[end.upperBound...] }
            return text[..<end.upperBound]
        }
    }

    extension Substring {
        fileprivate func range(of needle: String) -> Range<Index>? { firstRange(of: needle) }
    }
#endif
