import ConformanceKit
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing
import TransferServer
import UploadStorage

/// A target that works until the test opens it, and counts its calls.
private final class GatedTarget: TargetHandler {
    struct TargetFailure: Error {}

    struct State {
        var isOpen = false
        var fails = false
        var begun = 0
    }

    let state = Monitor(State())

    func methods(of target: Target) -> [Method] { [.post, .options] }

    func accept(_ proposal: UploadProposal) -> Acceptance { .accept }

    func complete(_ upload: ReceivedUpload) throws -> HTTPSemantics.Response {
        state.withLock { $0.begun += 1 }
        state.notifyAll()
        let isOpen = state.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0.isOpen ? true : nil }
        guard isOpen == true, !state.withLock({ $0.fails }) else { throw TargetFailure() }
        var content = [UInt8](repeating: 0, count: Int(upload.length))
        let count = try content.withUnsafeMutableBytes { buffer in try upload.read(into: buffer, at: 0) }
        let fields: Fields = [
            "X-Method": upload.method.rawValue, "X-Type": upload.fields["Content-Type"] ?? "",
            "X-Coding": upload.fields["Content-Encoding"] ?? "",
        ]
        return HTTPSemantics.Response(status: 202, fields: fields, content: Array(content[..<count]))
    }

    func respond(to request: TargetRequest) -> HTTPSemantics.Response { HTTPSemantics.Response(status: 404) }

    func open(fails: Bool = false) {
        state.withLock {
            $0.isOpen = true
            $0.fails = fails
        }
        state.notifyAll()
    }

    func awaitBegin() throws {
        guard state.wait(until: Deadline(in: .seconds(60)).nanoseconds, { $0.begun > 0 ? true : nil }) == true else {
            throw WireFailure.timedOut("the target was not called")
        }
    }
}

/// Tests with a target that works for some time, in an embedded server.
@Suite("Targets at work", .serialized, .blocking)
struct TargetTests {
    private func withTarget(_ body: (GatedTarget, UInt16) throws -> Void) throws {
        let directory = try TemporaryDirectory()
        var configuration = StoreConfiguration()
        configuration.minFree = 0
        let store = try UploadStore.open(root: directory.path + "/data", configuration: configuration)
        defer { store.close() }
        let target = GatedTarget()
        let server = Server(
            configuration: ServerConfiguration(listeners: [.tcp(host: "127.0.0.1", port: 0)], logLevel: .error),
            store: store, handlers: [("inbox", target)])
        try server.startBlocking()
        defer { server.stopBlocking() }
        guard case .tcp(_, let port)? = server.addresses.first else { throw TestFailure("no address") }
        try body(target, port)
    }

    private func exchange(_ port: UInt16, _ request: Request) throws -> Response {
        try RawConnection(port: port).exchange(request, within: .seconds(60))
    }

    private func begin(_ port: UInt16, _ content: [UInt8], _ fields: [(String, String)] = []) throws -> String {
        var request = Request.creation(.v8, "POST", "/inbox/", complete: false, .bytes(content))
        request.fields += fields
        return try #require(try exchange(port, request).location)
    }

    @Test(
        "OFF-14 CON-09: while the target works HEAD has ?0 and the full offset; the append gets the response"
    )
    func processing() throws {
        try withTarget { target, port in
            let location = try begin(port, [1, 2])
            let client = try RawConnection(port: port)
            try client.send(Request.append(.v8, location, at: 2, complete: true, .bytes([3])))
            try target.awaitBegin()
            for _ in 0..<5 {
                let state = try exchange(port, .retrieval(.v8, location))
                #expect(state.offset == 3)
                #expect(state.complete == false)
            }
            let late = try exchange(port, .append(.v8, location, at: 3, complete: true, .bytes([4])))
            #expect((400..<500).contains(late.status))
            #expect(late.complete == false)
            target.open()
            let response = try client.readResponse()
            #expect(response.status == 202)
            #expect(response.complete == true)
            #expect(response.content == [1, 2, 3])
            #expect(try exchange(port, .retrieval(.v8, location)).complete == true)
        }
    }

    @Test("APP-28 APP-20 CON-09: repeats wait for the target, get its response, and do not run it again")
    func joined() throws {
        try withTarget { target, port in
            let location = try begin(port, [1, 2])
            let first = try RawConnection(port: port)
            try first.send(Request.append(.v8, location, at: 2, complete: true, .bytes([])))
            try target.awaitBegin()
            let others = try (0..<4).map { _ in try RawConnection(port: port) }
            for (number, other) in others.enumerated() {
                // Behind a proxy the empty content may be sent in chunks.
                let content: Request.Content = number % 2 == 0 ? .bytes([]) : .chunks([])
                try other.send(Request.append(.v8, location, at: 2, complete: true, content))
            }
            let wrong = try exchange(port, .append(.v8, location, at: 2, complete: true, .chunks([[7]])))
            #expect(wrong.status == 400)
            #expect(others.allSatisfy { $0.staysSilent(for: .milliseconds(50)) })
            target.open()
            for connection in [first] + others {
                let response = try connection.readResponse()
                #expect(response.status == 202)
                #expect(response.complete == true)
                #expect(response.content == [1, 2])
            }
            #expect(target.state.withLock { $0.begun } == 1)
        }
    }

    @Test("CMP-03: a failing target gives a response with ?1, and does not run again")
    func failing() throws {
        try withTarget { target, port in
            target.open(fails: true)
            let location = try begin(port, [1])
            for _ in 0..<2 {
                let response = try exchange(port, .append(.v8, location, at: 1, complete: true, .bytes([])))
                #expect(response.status == 500)
                #expect(response.complete == true)
                #expect(response.problem?.code == "target-failed")
            }
            #expect(target.state.withLock { $0.begun } == 1)
        }
    }

    @Test(
        "APP-23 CRE-19 DIG-04: the target gets the method and metadata of the creation, and the coded bytes unchanged")
    func metadata() throws {
        try withTarget { target, port in
            target.open()
            let location = try begin(port, [0x1F, 0x8B], [("Content-Type", "text/x"), ("Content-Encoding", "gzip")])
            let response = try exchange(port, .append(.v8, location, at: 2, complete: true, .bytes([8, 0])))
            #expect(response.value("X-Method") == "POST")
            #expect(response.value("X-Type") == "text/x")
            #expect(response.value("X-Coding") == "gzip")
            #expect(response.content == [0x1F, 0x8B, 8, 0])
        }
    }

    @Test(
        "CRE-13 APP-04 VER-11: the response of the target is the same for one request and for parts, in any version",
        arguments: Interop.allCases)
    func sameAnswer(version: Interop) throws {
        try withTarget { target, port in
            target.open()
            let entire = try exchange(port, .creation(version, "POST", "/inbox/", complete: true, .bytes([])))
            let location = try begin(port, [])
            let parts = try exchange(port, .append(version, location, at: 0, complete: true, .bytes([])))
            for response in [entire, parts] {
                #expect(response.status == 202)
                #expect(response.content.isEmpty)
                #expect(response.states(complete: true, in: version))
            }
            #expect(target.state.withLock { $0.begun } == 2)
        }
    }
}
