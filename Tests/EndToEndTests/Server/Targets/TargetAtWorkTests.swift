import ConformanceKit
import HTTPSemantics
import ResumableUpload
import Testing
import UploadStorage

/// The responses to other requests while a target works on an upload, and the number of the target's runs.
@Suite("A target at work", .blocking)
struct TargetAtWorkTests {
    /// Completes an upload of the bytes 1, 2, 3 by an append whose target is held while it works on the upload.
    private func beginCompletion(
        _ host: EmbeddedServer, _ target: RecordingTarget, appending content: [UInt8] = [4]
    ) throws -> (location: String, completing: RawConnection) {
        let location = try host.begin([1, 2, 3])
        target.hold()
        let completing = try host.connect()
        try completing.send(.append(.v8, location, at: 3, complete: true, .bytes(content)))
        try target.awaitCalls(1)
        return (location, completing)
    }

    @Test(
        "OFF-14 CON-09: while the target works, HEAD has ?0 and the full offset; the completing client gets the response"
    )
    func retrieval() throws {
        let target = RecordingTarget()
        try withTarget(target) { host in
            let (location, completing) = try beginCompletion(host, target, appending: [4, 5])
            for method in ["HEAD", "GET", "HEAD"] {
                let state = try host.exchange(.retrieval(.v8, location, method))
                #expect(state.status == 204)
                #expect(state.offset == 5)
                #expect(state.complete == false)
                #expect(state.length == 5)
            }
            #expect(completing.staysSilent(for: .milliseconds(100)))
            target.release()
            let response = try completing.readResponse()
            #expect(response.status == 203)
            #expect(response.complete == true)
            let state = try host.exchange(.retrieval(.v8, location))
            #expect(state.complete == true)
            #expect(target.calls.count == 1)
        }
    }

    @Test("APP-28: a target does not run again if its response could not be stored")
    func unstoredAnswer() throws {
        let plan = FaultPlan()
        let store = try UploadStore(
            catalog: MemoryCatalog(plan: plan), area: MemoryBlobArea(plan: plan),
            configuration: StoreConfiguration(minFree: 0))
        let target = RecordingTarget { call in
            plan.fail(.commit, with: .noSpace)
            return RecordingTarget.summary(call)
        }
        let host = try EmbeddedServer(store: store, targets: [("inbox", target)])
        let location = try host.begin([1, 2, 3])
        let first = try host.exchange(.append(.v8, location, at: 3, complete: true, .bytes([4])))
        #expect(first.status == 507)
        #expect(first.complete == false)
        plan.fail(.commit, with: nil)
        let second = try host.exchange(.append(.v8, location, at: 4, complete: true, .bytes([])))
        #expect(second.status == 500)
        #expect(second.complete == true)
        #expect(target.calls.count == 1)
    }

    @Test("OFF-14: while the target works on a creation in one request, HEAD has ?0 and the full offset")
    func creation() throws {
        let target = RecordingTarget()
        try withTarget(target) { host in
            target.hold()
            let creating = try host.connect()
            try creating.send(.creation(.v8, "POST", "/inbox/doc", complete: true, .bytes(Payload.bytes(100_000))))
            let location = try #require(try creating.requireInterim().location)
            try target.awaitCalls(1)
            let state = try host.exchange(.retrieval(.v8, location))
            #expect(state.offset == 100_000)
            #expect(state.complete == false)
            target.release()
            #expect(try creating.readResponse().status == 203)
            #expect(target.calls.map(\.content) == [Payload.bytes(100_000)])
        }
    }

    @Test("APP-28: for several simultaneous completions the target runs once; each gets the response or a refusal")
    func simultaneous() throws {
        let target = RecordingTarget()
        try withTarget(target) { host in
            for round in 1...5 {
                let location = try host.begin([1, 2, 3])
                target.hold()
                let connections = try (0..<8).map { _ in try host.connect() }
                for connection in connections {
                    try connection.send(.append(.v8, location, at: 3, complete: true, .bytes([])))
                }
                try target.awaitCalls(round)
                target.release()
                var answers = 0
                for connection in connections {
                    do {
                        let response = try connection.readResponse()
                        if response.complete == true {
                            #expect(response.status == 203)
                            answers += 1
                        } else {
                            #expect(response.status >= 400)
                        }
                    } catch WireFailure.closed, WireFailure.reset {
                        // Another append took the upload over before the target began.
                    }
                }
                #expect(answers >= 1)
                #expect(target.calls.count == round)
                #expect(try host.exchange(.retrieval(.v8, location)).complete == true)
            }
        }
    }

    @Test("APP-20 APP-28: a repeat of the completing append waits for the target and gets the same response")
    func joining() throws {
        let target = RecordingTarget()
        try withTarget(target) { host in
            let (location, first) = try beginCompletion(host, target)
            // The first client disconnects before the response.
            first.reset()
            let second = try host.connect()
            try second.send(.append(.v8, location, at: 4, complete: true, .bytes([])))
            #expect(second.staysSilent(for: .milliseconds(100)))
            // A request that is not a repeat is refused without waiting.
            let wrong = try host.exchange(.append(.v8, location, at: 3, complete: true, .bytes([4])))
            #expect(wrong.status == 409)
            #expect(wrong.complete == false)
            #expect(wrong.offset == 4)
            target.release()
            let joined = try second.readResponse()
            #expect(joined.status == 203)
            #expect(joined.complete == true)
            let later = try host.exchange(.append(.v8, location, at: 4, complete: true, .bytes([])))
            #expect(later.status == 203)
            #expect(later.content == joined.content)
            #expect(target.calls.count == 1)
        }
    }

    @Test("CAN-07 CMP-04: a cancellation while the target works neither undoes its work nor runs it again")
    func cancelling() throws {
        let target = RecordingTarget()
        try withTarget(target) { host in
            let (location, completing) = try beginCompletion(host, target)
            let cancelling = try host.connect()
            try cancelling.send(.cancellation(.v8, location))
            _ = cancelling.staysSilent(for: .milliseconds(200))
            target.release()
            let response = try completing.readResponse()
            #expect(response.status == 203)
            let canceled = try cancelling.readResponse(to: "DELETE")
            #expect(canceled.status == 204 || canceled.status == 503 || canceled.status == 404)
            #expect(target.calls.count == 1)
        }
    }

    @Test("CON-10: while the target works, other uploads and downloads continue")
    func others() throws {
        let target = RecordingTarget()
        try withTarget(target) { host in
            let (_, completing) = try beginCompletion(host, target)
            let file = try host.exchange(.creation(.v8, "PUT", "/files/f.bin", complete: true, .bytes([7, 8])))
            #expect(file.status == 201)
            #expect(try host.exchange(.get("/files/f.bin")).content == [7, 8])
            let other = try host.begin([9])
            #expect(try host.exchange(.retrieval(.v8, other)).offset == 1)
            target.release()
            #expect(try completing.readResponse().status == 203)
        }
    }
}
