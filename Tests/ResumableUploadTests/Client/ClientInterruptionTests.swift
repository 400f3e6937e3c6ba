import HTTPSemantics
import ResumableUpload
import Testing

/// The effect of errors, conflicts and retrieved offsets on the state machine of a client.
@Suite struct ClientInterruptionTests {
    private let v8 = Dialect.interop8

    // MARK: Interruptions

    @Test(
        "CLI-12: after the status of a temporary failure the client retrieves the offset, then appends",
        arguments: [408, 423, 425, 429, 500, 502, 503, 504])
    func transient(status: Int) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce()
        upload.answer(Status(rawValue: status), sent: 60)
        let retrieval = try upload.request()
        #expect(retrieval.kind == .retrieve && retrieval.content == .none)
        upload.answer(204, v8.head(complete: false, offset: 40, length: 100))
        let append = try upload.request()
        #expect(append.content == .range(from: 40, count: 60))
        #expect(append.fields["Upload-Offset"] == "40")
    }

    @Test(
        "CLI-08 CLI-10: the client continues at the server's offset, below or above the amount sent",
        arguments: [40, 50, 60])
    func offset(reported: Int64) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce()
        upload.cut(sent: 50)
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: reported))
        #expect(try upload.request().content == .range(from: reported, count: 100 - reported))
    }

    @Test(
        "CLI-13: a request that is refused with another status is not repeated",
        arguments: [400, 402, 405, 412, 415, 422, 501, 505])
    func refused(status: Int) throws {
        var upload = try ClientUpload.appending()
        _ = try upload.request()
        upload.answer(Status(rawValue: status), v8.head(complete: false), sent: 10)
        #expect(upload.failed() == .refused(Status(rawValue: status)))
    }

    @Test("an upload can be resumed after a refusal for missing authorization", arguments: [401, 403, 407])
    func unauthorized(status: Int) throws {
        for kind in [ClientRequest.Kind.append, .retrieve] {
            var upload = kind == .append ? try ClientUpload.appending() : ClientUpload.resumed()
            #expect(try upload.request().kind == kind)
            upload.answer(Status(rawValue: status))
            #expect(upload.failed() == .unauthorized(Status(rawValue: status)))
            #expect(upload.resumption != nil)
        }
    }

    @Test("an upload that no longer exists has no resume data", arguments: [404, 410])
    func gone(status: Int) throws {
        for kind in [ClientRequest.Kind.append, .retrieve] {
            var upload = kind == .append ? try ClientUpload.appending() : ClientUpload.resumed()
            _ = try upload.request()
            upload.answer(Status(rawValue: status))
            #expect(upload.failed() == .gone(Status(rawValue: status)))
            #expect(upload.resumption == nil)
        }
    }

    @Test("an upload that was only announced and no longer exists is created again", arguments: [Method.put, .post])
    func announcedOnly(method: Method) throws {
        for sent in [40, 100] as [Int64] {
            var upload = ClientUpload.fresh(method: method)
            _ = try upload.request()
            _ = upload.announce("/u/a")
            upload.interrupted(.connection, sent: sent, hasSourceEnded: false)
            _ = try upload.wait()
            #expect(try upload.request().kind == .retrieve)
            upload.answer(404)
            // A target that has got all content may have processed it.
            guard method == .put || sent < 100 else {
                #expect(upload.failed() == .gone(404))
                continue
            }
            #expect(upload.resumption == nil)
            _ = try upload.wait()
            let again = try upload.request()
            #expect(again.kind == .create && again.content == .range(from: 0, count: 100))
            _ = upload.announce("/u/b")
            upload.answer(201, v8.head(complete: true), sent: 100)
            #expect(upload.outcome() != nil)
        }
    }

    @Test("an upload of which an offset was reported is not created again", arguments: [0, 40] as [Int64])
    func reportedOffset(offset: Int64) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        _ = upload.announce("/u/a")
        upload.interrupted(.connection, sent: 60, hasSourceEnded: false)
        _ = try upload.wait()
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: offset))
        #expect(try upload.request().kind == .append)
        upload.answer(404)
        #expect(upload.failed() == .gone(404))
    }

    @Test("the number of creations of an upload that never exists is limited")
    func announcedForever() throws {
        var upload = ClientUpload.fresh()
        var requests = 0
        while upload.failed() == nil && requests < 200 {
            guard case .send(let request) = upload.next(now: 0) else { continue }
            requests += 1
            if request.kind == .create {
                _ = upload.announce("/u/\(requests)")
                upload.interrupted(.connection, sent: 40, hasSourceEnded: false)
            } else {
                upload.answer(404)
            }
        }
        #expect(upload.failed() != nil && requests < 100)
    }

    @Test("CLI-13: the client waits for Retry-After instead of the policy's delay")
    func retryAfter() throws {
        var upload = ClientUpload.resumed()
        _ = try upload.request()
        upload.answer(429, ["Retry-After": "7"])
        #expect(try upload.wait() == 7)
        _ = try upload.request()
        upload.answer(503)
        #expect(try upload.wait() == 1)
    }

    @Test("CLI-35: the number of retries without progress is limited, and progress resets the count")
    func attempts() throws {
        var retry = RetryPolicy()
        retry.maxRetriesWithoutProgress = 2
        var upload = ClientUpload.fresh(retry: retry)
        _ = try upload.request()
        _ = upload.announce()
        upload.cut()
        for _ in 0..<1 {
            _ = try upload.request()
            upload.cut(.stall)
        }
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: 1))
        _ = try upload.request()
        for _ in 0..<2 {
            upload.cut()
            _ = try upload.request()
        }
        upload.cut(.stall)
        #expect(upload.failed() == .exhausted(lastReason: .stall))
        #expect(upload.resumption?.acknowledged == 1)
    }

    @Test("a creation without a response is repeated only if the repetition is safe")
    func repeated() throws {
        for (method, reason, sent, isRepeated) in [
            (Method.post, ClientInterruption.connection, Int64(10), false), (.post, .connection, 0, true),
            (.post, .unreachable, 0, true), (.put, .connection, 10, true), (.put, .unusableConnection, 0, false),
        ] {
            var upload = ClientUpload.fresh(method: method)
            _ = try upload.request()
            upload.cut(reason, sent: sent)
            if isRepeated {
                #expect(try upload.request().kind == .create)
            } else {
                #expect(upload.failed() != nil)
            }
        }
        var empty = ClientUpload.fresh(length: 0)
        _ = try empty.request()
        empty.cut()
        #expect(empty.failed() == .notResumable(.connection))
        var careful = ClientUpload.fresh(style: .careful)
        _ = try careful.request()
        careful.cut()
        #expect(try careful.request().kind == .create)
    }

    // MARK: Retrieval

    @Test(
        "STF-13: the client does not continue after a retrieval without a valid offset",
        arguments: ["5.0", "-1", "x", ""])
    func voidOffset(value: String) throws {
        var upload = ClientUpload.resumed()
        _ = try upload.request()
        upload.answer(200, ["Upload-Offset": value, "Upload-Complete": "?0"])
        #expect(upload.failed() == .offsetUnknown(200))
        #expect(upload.resumption != nil)
    }

    @Test("CLI-33: an offset below a previously reported offset ends the upload, and the upload resource is deleted")
    func lost() throws {
        var upload = ClientUpload.resumed(acknowledged: 60)
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: 59))
        #expect(try upload.request().kind == .cancel)
        upload.cut()
        #expect(upload.failed() == .offsetLost(acknowledged: 60, reported: 59))
        #expect(upload.resumption == nil)
    }

    @Test("CLI-05: an upload whose length differs from the length of the source fails with `sourceChanged`")
    func otherLength() throws {
        var upload = ClientUpload.resumed()
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: 0, length: 101))
        #expect(upload.failed() == .sourceChanged)
    }

    @Test("CLI-38: a lost final response is requested once, by an append without content that completes the upload")
    func replay() throws {
        for dialect in [Dialect.interop8, .rfc] {
            var upload = ClientUpload.resumed(dialect)
            _ = try upload.request()
            upload.answer(204, dialect.head(complete: true, offset: 100, length: 100))
            let request = try upload.request()
            #expect(request.kind == .append && request.content == .empty)
            #expect(request.fields["Upload-Offset"] == "100" && request.fields["Upload-Complete"] == "?1")
            var refused = upload
            upload.answer(201, dialect.head(complete: true))
            #expect(upload.outcome()?.response.status == 201 && upload.outcome()?.isResponseLost == false)
            refused.answer(400, dialect.head(complete: false))
            #expect(refused.outcome()?.isResponseLost == true)
        }
    }

    @Test("CLI-38: if the request for a lost final response is interrupted or gets a transient error, it is repeated")
    func repeatedReplay() throws {
        var upload = ClientUpload.resumed()
        for round in 0..<4 {
            #expect(try upload.request().kind == .retrieve)
            upload.answer(204, v8.head(complete: true, offset: 100, length: 100))
            #expect(try upload.request().content == .empty)
            if round == 3 { break }
            if round == 1 {
                upload.answer(502)
            } else {
                upload.interrupted(.connection, sent: 0, hasSourceEnded: false)
            }
        }
        var rejected = upload
        rejected.answer(500, v8.head(complete: true))
        #expect(rejected.outcome()?.response.status == 500 && rejected.outcome()?.isResponseLost == false)
        // Without an answer the result is unknown, so the upload does not end as successful.
        for _ in 0..<9 {
            upload.interrupted(.connection, sent: 0, hasSourceEnded: false)
            var copy = upload
            guard copy.failed() == nil else { break }
            _ = try upload.request()
            upload.answer(204, v8.head(complete: true, offset: 100, length: 100))
            _ = try upload.request()
        }
        #expect(upload.failed() == .exhausted(lastReason: .connection))
        #expect(upload.resumption != nil)
    }

    @Test("CLI-38: a lost final response is not requested in versions before 8", arguments: Dialect.allCases)
    func lostAnswer(dialect: Dialect) throws {
        guard dialect < .interop8 else { return }
        var upload = ClientUpload.resumed(dialect)
        _ = try upload.request()
        upload.answer(204, dialect.head(complete: true, offset: 100))
        #expect(upload.outcome()?.isResponseLost == true)
    }

    @Test("an upload fails if the server ended it before its last byte and the response is lost")
    func endedEarly() throws {
        var upload = ClientUpload.resumed()
        _ = try upload.request()
        upload.answer(204, v8.head(complete: true, offset: 40))
        var replayed = upload
        #expect(try replayed.request().fields["Upload-Offset"] == "40")
        replayed.answer(400, v8.head(complete: true))
        #expect(replayed.outcome()?.response.status == 400)
        _ = try upload.request()
        upload.answer(404)
        #expect(upload.failed() == .answerLost)
    }

    @Test("CLI-09: if the next bytes of the source can no longer be read, the upload ends and its resource is deleted")
    func sourceFailed() throws {
        var upload = ClientUpload.resumed()
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: 40))
        _ = try upload.request()
        upload.sourceFailed(at: 40)
        #expect(try upload.request().kind == .cancel)
        upload.answer(204)
        #expect(upload.failed() == .sourceUnavailable(at: 40))
    }

    @Test("resume data remains after an unconfirmed deletion, so that the upload can be deleted later")
    func canceled() throws {
        for isConfirmed in [true, false] {
            var upload = ClientUpload.resumed()
            upload.cancel()
            #expect(try upload.request().method == .delete)
            if isConfirmed { upload.answer(204) } else { upload.cut() }
            #expect(upload.failed() == .canceled)
            #expect((upload.resumption == nil) == isConfirmed)
        }
        var nothing = ClientUpload.fresh()
        nothing.cancel()
        #expect(nothing.failed() == .canceled)
    }

    @Test("CLI-18: an upload of this run that has expired is not retrieved, but created again")
    func ownExpiry() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request(now: 0)
        _ = upload.announce("/u/1", .sameOrigin, v8.interim(limit: "max-age=10"), now: 0)
        #expect(upload.resumption?.expires == 10)
        upload.cut(sent: 10)
        var later = upload
        #expect(try upload.request(now: 10).kind == .retrieve)
        #expect(try later.request(now: 11).kind == .create)
        #expect(later.resumption == nil)
    }

    @Test(
        "an expired upload of an earlier run is retrieved before it fails, because the local clock may have been wrong")
    func expiry() throws {
        var gone = ClientUpload.resumed(expires: 99)
        #expect(try gone.request(now: 100).kind == .retrieve)
        var alive = gone
        gone.answer(404, now: 100)
        #expect(gone.failed(now: 100) == .expired && gone.resumption == nil)
        var again = alive

        // The server sends no new lifetime.
        alive.answer(204, v8.head(complete: false, offset: 40), now: 100)
        #expect(try alive.request(now: 500).kind == .append)
        #expect(alive.resumption != nil)

        // With a lifetime of 0 in every response the offset is retrieved once before each append.
        again.answer(204, v8.head(complete: false, offset: 5, limit: "max-age=0"), now: 112)
        #expect(try again.request(now: 114).kind == .append)
        again.answer(204, v8.head(complete: false, offset: 50, limit: "max-age=0"), now: 115)
        #expect(try again.request(now: 116).kind == .retrieve)
    }

    @Test("an expired upload can still be resumed if the server cannot be reached")
    func expiredAndUnreachable() throws {
        var upload = ClientUpload.resumed(expires: 99)
        for _ in 0...RetryPolicy().maxRetriesWithoutProgress {
            _ = try upload.request(now: 100)
            upload.cut(.unreachable)
        }
        #expect(upload.failed(now: 100) == .exhausted(lastReason: .unreachable))
        #expect(upload.resumption?.uri == "/u/1")
    }
}
