import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing
import TransferServer
import UploadStorage

/// A target of an embedding program that produces its response while the response is sent.
@Suite("Streaming targets", .blocking)
struct StreamingTargetTests {
    /// Content with a line for each number; a read returns at most one line.
    private final class Numbers: ContentStream {
        private struct State {
            var next = 0
            var pending: ArraySlice<UInt8> = []
        }

        private let state = Monitor(State())
        private let end: Int
        private let failsAtEnd: Bool
        private let releaseCount: Monitor<Int>

        init(to end: Int, failsAtEnd: Bool, released: Monitor<Int>) {
            self.end = end
            self.failsAtEnd = failsAtEnd
            releaseCount = released
        }

        deinit { releaseCount.withLock { $0 += 1 } }

        func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int {
            try state.withLock { state in
                if state.pending.isEmpty {
                    if state.next == end {
                        if failsAtEnd { throw RecordingTarget.Failure() }
                        return 0
                    }
                    state.pending = Array("\(state.next)\n".utf8)[...]
                    state.next += 1
                }
                let part = state.pending.prefix(buffer.count)
                buffer.copyBytes(from: part)
                state.pending = state.pending.dropFirst(part.count)
                return part.count
            }
        }
    }

    /// Content that ends after half of its length.
    private final class Half: ContentStream {
        let length: Int64? = 100

        func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int {
            guard position == 0 else { return 0 }
            buffer.copyBytes(from: [UInt8](repeating: 7, count: 50))
            return 50
        }
    }

    private struct Counting: TargetHandler {
        let released = Monitor(0)
        var shouldStoreQuery: Bool { true }

        func methods(of target: Target) -> [HTTPSemantics.Method] { [.get, .head, .post] }
        func accept(_ proposal: UploadProposal) -> Acceptance { .accept }

        func complete(_ upload: ReceivedUpload) throws -> HTTPSemantics.Response {
            HTTPSemantics.Response(status: 203, content: numbers(for: upload.target))
        }

        func respond(to request: TargetRequest) -> HTTPSemantics.Response {
            HTTPSemantics.Response(
                status: 203, fields: ["Content-Type": "text/plain"], content: numbers(for: request.target))
        }

        private func numbers(for target: Target) -> HTTPSemantics.Response.Content {
            if target.segments.last == "half" { return .stream(Half()) }
            return .stream(
                Numbers(
                    to: Int(target.segments.last ?? "") ?? 0, failsAtEnd: target.query == "fail", released: released))
        }
    }

    @Test("Streamed content arrives complete, the connection stays open, and the stream is released")
    func streaming() throws {
        let target = Counting()
        let host = try EmbeddedServer(targets: [("count", target)])
        let connection = try host.connect()
        for count in [0, 1, 5000] {
            let response = try connection.exchange(.get("/count/\(count)"))
            #expect(response.status == 203 && response.value("Transfer-Encoding") == "chunked")
            #expect(response.value("Cache-Control") == "no-cache")
            #expect(response.text == (0..<count).map { "\($0)\n" }.joined())
            let other = try host.connect()
            let head = try other.exchange(Request("HEAD", "/count/\(count)"))
            #expect(head.status == 203 && head.value("Content-Type") == "text/plain")
            other.expectClosed()
        }
        #expect(eventually { target.released.withLock { $0 } >= 6 })
    }

    @Test("If a stream fails, the server aborts the response, however much was sent before")
    func failing() throws {
        let target = Counting()
        let host = try EmbeddedServer(targets: [("count", target)])
        for count in [0, 1, 5000] {
            let connection = try host.connect()
            try connection.send(.get("/count/\(count)?fail"))
            #expect(throws: WireFailure.self) { try connection.readResponse() }
            let old = try host.connect()
            var request = Request.get("/count/\(count)?fail")
            request.version = "HTTP/1.0"
            try old.send(request)
            #expect(try old.awaitClosing().closing == .reset)
        }
        #expect(eventually { target.released.withLock { $0 } == 6 })
    }

    @Test("Streamed content in the response to an upload is read once and stored, so that it can be sent again")
    func stored() throws {
        let target = Counting()
        let host = try EmbeddedServer(targets: [("count", target)])
        let location = try host.begin(.v8, "POST", "/count/100", [1])
        let expected = (0..<100).map { "\($0)\n" }.joined()
        for _ in 1...2 {
            let response = try host.exchange(.append(.v8, location, at: 1, complete: true, .none))
            #expect(response.status == 203)
            #expect(response.text == expected)
        }
        #expect(target.released.withLock { $0 } == 1)
    }

    @Test("If a stream fails or is too long to be stored, the append gets 500, and so does a repeated append")
    func notStored() throws {
        for path in ["/count/1000000", "/count/5?fail"] {
            let host = try EmbeddedServer(targets: [("count", Counting())])
            let location = try host.begin(.v8, "POST", path, [1])
            for _ in 1...2 {
                let response = try host.exchange(.append(.v8, location, at: 1, complete: true, .none))
                #expect(response.status == 500, "\(path)")
                #expect(response.text.contains("target-failed"), "\(response.text)")
            }
        }
    }

    @Test("A stream that ends before its length closes the connection, and the response to an upload is 500")
    func half() throws {
        let host = try EmbeddedServer(targets: [("count", Counting())])
        let connection = try host.connect()
        try connection.send(.get("/count/half"))
        #expect(throws: WireFailure.self) { try connection.readResponse() }
        let location = try host.begin(.v8, "POST", "/count/half", [1])
        #expect(try host.exchange(.append(.v8, location, at: 1, complete: true, .none)).status == 500)
    }
}
