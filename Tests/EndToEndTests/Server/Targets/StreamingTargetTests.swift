import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing
import TransferServer
import UploadStorage

/// A target of one's own whose answers are produced while they are sent.
@Suite("Streaming targets", .timeLimit(.minutes(15)), .blocking)
struct StreamingTargetTests {
    /// Lines with numbers, a few bytes at a time.
    private final class Numbers: StreamedContent {
        private struct State {
            var next = 0
            var pending: ArraySlice<UInt8> = []
        }

        private let state = Monitor(State())
        private let end: Int
        private let failsAtEnd: Bool
        private let isReleased: Monitor<Int>

        init(to end: Int, failsAtEnd: Bool, released: Monitor<Int>) {
            self.end = end
            self.failsAtEnd = failsAtEnd
            isReleased = released
        }

        deinit { isReleased.withLock { $0 += 1 } }

        func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
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

    private struct Counting: TargetHandler {
        let released = Monitor(0)

        func methods(of target: Target) -> [HTTPSemantics.Method] { [.get, .head] }
        func accept(_ proposal: UploadProposal) -> Acceptance { .accept }
        func complete(_ upload: ReceivedUpload) throws -> TargetOutcome { throw RecordingTarget.Failure() }

        func respond(to request: TargetRequest) -> TargetAnswer {
            .stream(
                status: 203, fields: ["Content-Type": "text/plain"],
                Numbers(
                    to: Int(request.target.segments.last ?? "") ?? 0, failsAtEnd: request.target.query == "fail",
                    released: released))
        }
    }

    @Test("Its content arrives as it was produced, on a connection that stays open, and is released")
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
        let released: Bool? = pollUntil(within: .seconds(60)) { target.released.withLock { $0 } >= 6 ? true : nil }
        #expect(released == true)
    }

    @Test("Its failure breaks the message, whatever was sent before")
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
        let released: Bool? = pollUntil(within: .seconds(60)) { target.released.withLock { $0 } == 6 ? true : nil }
        #expect(released == true)
    }
}
