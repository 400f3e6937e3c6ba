import ConformanceKit
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TransferServer
import UploadStorage

/// A target resource of a test: it records every upload that it receives. A test can delay the response to an upload.
final class RecordingTarget: TargetHandler {
    /// A completed upload.
    struct Call: Sendable {
        let method: String
        let path: String
        let fields: Fields
        let content: [UInt8]
    }

    /// The error of a target that fails.
    struct Failure: Error {}

    private struct State {
        var calls: [Call] = []
        var proposals = 0
        var isHeld = false
    }

    private let state = Monitor(State())
    private let known: [Method]
    private let acceptance: @Sendable (UploadProposal) -> Acceptance
    private let answer: @Sendable (Call) throws -> HTTPSemantics.Response

    /// - Parameters:
    ///   - answer: returns the final response.
    ///   - acceptance: accepts or refuses an upload before its content arrives.
    init(
        methods: [Method] = [.get, .post, .put, .patch],
        answer: @escaping @Sendable (Call) throws -> HTTPSemantics.Response = RecordingTarget.summary,
        acceptance: @escaping @Sendable (UploadProposal) -> Acceptance = { _ in .accept }
    ) {
        known = methods
        self.acceptance = acceptance
        self.answer = answer
    }

    /// A response with an unusual status, a field of its own, and content that describes the received content.
    @Sendable static func summary(_ call: Call) -> HTTPSemantics.Response {
        HTTPSemantics.Response(
            status: 203, fields: ["Content-Type": "text/x-summary", "X-Length": "\(call.content.count)"],
            content: Array("\(call.method) \(call.content.sha256)\n".utf8))
    }

    var calls: [Call] { state.withLock { $0.calls } }
    /// The number of calls of ``accept(_:)``.
    var proposals: Int { state.withLock { $0.proposals } }

    /// Delays the return of ``complete(_:)`` until ``release()`` is called, or for at most 30 seconds.
    func hold() { state.withLock { $0.isHeld = true } }

    func release() {
        state.withLock { $0.isHeld = false }
        state.notifyAll()
    }

    /// Waits until the target has been called `count` times.
    func awaitCalls(_ count: Int) throws {
        let reached: Bool? = state.wait(until: Deadline(in: .seconds(60)).nanoseconds) {
            $0.calls.count >= count ? true : nil
        }
        if reached == nil { throw WireFailure.timedOut("the target was called \(calls.count) times") }
    }

    // MARK: TargetHandler

    func methods(of target: Target) -> [Method] { known }

    func accept(_ proposal: UploadProposal) -> Acceptance {
        state.withLock { $0.proposals += 1 }
        return acceptance(proposal)
    }

    func complete(_ upload: ReceivedUpload) throws -> HTTPSemantics.Response {
        var content: [UInt8] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 100_000, alignment: 1)
        defer { buffer.deallocate() }
        while true {
            let count = try upload.read(into: buffer, at: Int64(content.count))
            if count == 0 { break }
            content += buffer[..<count]
        }
        let call = Call(
            method: upload.method.rawValue, path: upload.target.path, fields: upload.fields, content: content)
        state.withLock { $0.calls.append(call) }
        state.notifyAll()
        _ = state.wait(until: Deadline(in: .seconds(30)).nanoseconds) { $0.isHeld ? nil : true }
        return try answer(call)
    }

    func respond(to request: TargetRequest) -> HTTPSemantics.Response {
        let text = "\(request.method) \(request.target.path) \(request.target.query ?? "-")\n"
        return HTTPSemantics.Response(status: 200, content: Array(text.utf8))
    }
}
