import Glibc
import HTTPTestSupport
import SystemCalls
import TestSupport
import Testing

@testable import ConformanceKit

/// Runs against servers that hang, send too much, send wrong lengths or close connections.
@Suite("Hostile servers", .timeLimit(.minutes(15)))
struct HostileServerTests {
    enum Behavior: String, CaseIterable, Sendable {
        case closesAtOnce
        case sendsNothing
        case sendsNoHTTP
        case sendsEndlessHead
        case sendsEndlessInterims
        case sendsEndlessContent
        case announcesMoreContent
        case sendsSlowly
        case sendsBrokenChunks
        case neverReads
    }

    @Test("A run against a hostile server ends with status 2", arguments: Behavior.allCases)
    func hostile(_ behavior: Behavior) async throws {
        let report = try await onThread {
            let server = try LoopbackListener("hostile") { connection, _ in
                HostileServerTests.serve(behavior, connection)
            }
            var settings = ServerSettings(url: "http://127.0.0.1:\(server.port)/files/")
            settings.timeout = .milliseconds(200)
            return try ServerRun(settings, control: nil).run()
        }
        #expect(report.failure != nil)
        #expect(report.exitStatus(strict: false) == 2)
    }

    @Test("If a server stops answering during a run, the remaining cases are blocked")
    func diesLater() async throws {
        let report = try await onThread {
            let server = try ReferenceServer()
            var settings = ServerSettings(url: server.url)
            settings.timeout = .seconds(5)
            var done = 0
            return try ServerRun(settings, control: nil).run { _ in
                done += 1
                if done == 20 { try? server.kill() }
                return true
            }
        }
        #expect(report.failure?.contains("stopped answering") == true)
        #expect(report.count("blocked") > 100)
        #expect(report.count("harness") == 0)
        #expect(report.exitStatus(strict: false) != 0)
    }

    @Test("The sizes of a transcript and a response body are limited")
    func bounds() async throws {
        let kept = try await onThread { () -> (Int, Int, Int64) in
            let server = try LoopbackListener("hostile") { connection, _ in
                // If the request were not read, the close would reset the connection.
                _ = try? PeerInput(connection).head()
                HostileServerTests.write(connection, "HTTP/1.1 200 OK\r\nContent-Length: 20971520\r\n\r\n")
                let block = [UInt8](repeating: UInt8(ascii: "a"), count: 1 << 20)
                for _ in 0..<20 where !HostileServerTests.write(connection, block) { return }
            }
            let endpoint = try #require(Endpoint("http://127.0.0.1:\(server.port)/"))
            let transcript = Transcript()
            let connection = try RawConnection(
                endpoint, timeout: .seconds(30), transcript: transcript, observer: Observations())
            let response = try connection.exchange(Request("GET", "/"))
            var bytes = 0
            for entry in transcript.entries {
                if case .received(let kept, _) = entry.event { bytes += kept.count }
            }
            return (bytes, response.content.count, response.contentSize)
        }
        #expect(kept.0 <= Transcript.bytesInAll)
        #expect(kept.1 == RawConnection.Bounds.keptContent)
        #expect(kept.2 == 20 << 20)
    }

    private static func serve(_ behavior: Behavior, _ connection: FileDescriptor) {
        let input = PeerInput(connection)
        if behavior == .closesAtOnce { return }
        if behavior == .neverReads {
            // Waits until the peer closes the connection.
            var entry = pollfd(fd: connection.rawValue, events: 0x2000, revents: 0)
            poll(&entry, 1, 30_000)
            return
        }
        guard (try? input.head()) ?? nil != nil else { return }
        switch behavior {
        case .closesAtOnce, .neverReads: return
        case .sendsNothing: _ = try? input.head()
        case .sendsNoHTTP: write(connection, "220 mail.example ESMTP\r\n\r\n")
        case .sendsEndlessHead: repeatedly { write(connection, "X-Field: and so on\r\n") }
        case .sendsEndlessInterims: repeatedly { write(connection, "HTTP/1.1 102 Processing\r\n\r\n") }
        case .sendsEndlessContent:
            write(connection, "HTTP/1.1 200 OK\r\n\r\n")
            let block = [UInt8](repeating: UInt8(ascii: "a"), count: 64 << 10)
            repeatedly { write(connection, block) }
        case .announcesMoreContent:
            write(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        case .sendsSlowly:
            for byte in Array("HTTP/1.1 200 OK\r\nX-Slow: \(String(repeating: "a", count: 400))".utf8) {
                guard write(connection, [byte]) else { return }
                var pause = timespec(tv_sec: 0, tv_nsec: 20_000_000)
                nanosleep(&pause, nil)
            }
        case .sendsBrokenChunks:
            write(connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        }
    }

    private static func repeatedly(_ step: () -> Bool) {
        while step() {}
    }

    @discardableResult
    static func write(_ connection: FileDescriptor, _ text: String) -> Bool { write(connection, Array(text.utf8)) }

    @discardableResult
    static func write(_ connection: FileDescriptor, _ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                send(connection.rawValue, $0.baseAddress?.advanced(by: sent), $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
