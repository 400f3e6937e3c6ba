import HTTPSemantics
import ResumableUpload
import Testing

/// Refusals to which a client can react: a wrong offset, a size above a limit, a redirection.
@Suite struct ClientRefusalTests {
    private let v8 = Dialect.interop8

    // MARK: 409

    @Test(
        "CLI-32: the upload continues at the offset of a 409, from the field or from the problem document",
        arguments: [false, true])
    func conflict(isProblem: Bool) throws {
        var upload = try ClientUpload.appending()
        _ = try upload.request()
        upload.answer(
            409, isProblem ? [:] : v8.head(complete: false, offset: 10),
            problem: isProblem ? ProblemType(type: "x", expectedOffset: 10) : nil)
        #expect(try upload.request().content == .range(from: 10, count: 90))
    }

    @Test("a 409 with another offset is a conflict of offsets, even if it reports the upload as complete")
    func flagged() throws {
        var upload = try ClientUpload.appending()
        _ = try upload.request()
        upload.answer(409, v8.head(complete: true, offset: 100))
        #expect(upload.outcome() == nil)
        #expect(try upload.request().content == .empty)
    }

    @Test(
        "CLI-32: after a 409 without an offset the client retrieves the offset; a persistent conflict ends the upload")
    func endless() throws {
        var upload = try ClientUpload.appending()
        var kinds: [ClientRequest.Kind] = []
        for _ in 0..<100 {
            guard let request = try? nextRequest(&upload) else { break }
            kinds.append(request.kind)
            if request.kind == .append {
                upload.answer(409)
            } else {
                upload.answer(204, v8.head(complete: false, offset: 0))
            }
        }
        #expect(kinds.prefix(3) == [.append, .retrieve, .append])
        #expect(kinds.count < 30)
        #expect(upload.failed() == .exhausted(lastReason: .offsetConflict))
    }

    @Test("an upload whose resource no longer exists after a 409 fails with `gone`")
    func destroyed() throws {
        var upload = try ClientUpload.appending(.interop6)
        _ = try upload.request()
        upload.answer(409, Dialect.interop6.head(complete: false))
        #expect(try upload.request().kind == .retrieve)
        upload.answer(404)
        #expect(upload.failed() == .gone(404))
    }

    @Test("CLI-33: a 409 with an offset below a previously reported offset ends the upload")
    func goingBack() throws {
        var upload = ClientUpload.resumed(acknowledged: 20)
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: 30))
        _ = try upload.request()
        upload.answer(409, v8.head(complete: false, offset: 25))
        #expect(try upload.request().kind == .cancel)
    }

    private func nextRequest(_ upload: inout ClientUpload) throws -> ClientRequest {
        while true {
            switch upload.next(now: 0) {
            case .send(let request): return request
            case .wait: continue
            case .refreshCredentials, .finished, .failed: throw Unexpected()
            }
        }
    }

    // MARK: 413

    @Test(
        "CLI-15 CLI-14: after a 413 the client requests the limits, and each further 413 reduces the size of the parts")
    func tooLarge() throws {
        var upload = ClientUpload.fresh(length: 1000)
        #expect(try upload.request().content == .range(from: 0, count: 1000))
        upload.answer(413, sent: 300)
        #expect(try upload.request().kind == .discover)
        upload.answer(204)
        #expect(try upload.request().content == .empty)
        upload.answer(201, v8.head(complete: false), location: "/u/1")
        var sizes: [Int64] = []
        while case .range(_, let count) = try upload.request().content {
            sizes.append(count)
            if count > 100 {
                upload.answer(413, v8.head(complete: false))
                #expect(try upload.request().kind == .retrieve)
                upload.answer(204, v8.head(complete: false, offset: 0))
            } else {
                break
            }
        }
        #expect(sizes == [500, 250, 125, 62])
    }

    @Test("CLI-14 CLI-15: the client obeys the limits in the response to OPTIONS")
    func discovered() throws {
        var upload = try ClientUpload.appending()
        _ = try upload.request()
        upload.answer(413)
        let discovery = try upload.request()
        #expect(discovery.method == .options && discovery.resource == .target)
        upload.answer(204, v8.head(limit: "max-append-size=30"))
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: 0))
        #expect(try upload.request().content == .range(from: 0, count: 30))
    }

    @Test("CLI-14: a 413 to a part of the minimum size, or to a request without content, ends the upload")
    func smallest() throws {
        var upload = try ClientUpload.appending(limit: "min-append-size=60")
        _ = try upload.request()
        upload.answer(413)
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: 0))
        #expect(try upload.request().content == .range(from: 0, count: 60))
        upload.answer(413)
        #expect(try upload.request().kind == .cancel)
        var careful = ClientUpload.fresh(style: .careful)
        _ = try careful.request()
        careful.answer(413, v8.head(limit: "max-size=50"))
        #expect(careful.failed() == .tooLarge(limit: 50))
    }

    @Test("CLI-17: a max-size below the length, in any response, ends the upload")
    func maxSize() throws {
        var upload = ClientUpload.resumed()
        _ = try upload.request()
        upload.answer(204, v8.head(complete: false, offset: 0, limit: "max-size=99"))
        #expect(try upload.request().kind == .cancel)
        upload.answer(204)
        #expect(upload.failed() == .tooLarge(limit: 99))
    }

    // MARK: Digests

    @Test("CLI-30: a digest mismatch that the server reports ends the upload, and the upload resource is deleted")
    func digest() throws {
        var upload = try ClientUpload.appending()
        _ = try upload.request()
        upload.answer(
            400, v8.head(complete: false),
            problem: ProblemType(type: "https://h/x#digest-mismatch", expectedOffset: nil))
        #expect(try upload.request().kind == .cancel)
        upload.answer(204)
        #expect(upload.failed() == .digestMismatch)
    }

    // MARK: Redirections

    @Test(
        "RED-02: after 307 and 308 the request is repeated at the new location with the same method",
        arguments: [Status(rawValue: 307), 308])
    func redirected(status: Status) throws {
        var creation = ClientUpload.fresh(method: .put)
        _ = try creation.request()
        creation.answer(status, location: "/there")
        let again = try creation.request()
        #expect(again.resource == .other("/there") && again.method == .put && again.hasCredentials)
        #expect(again.content == .range(from: 0, count: 100))

        var retrieval = ClientUpload.resumed()
        _ = try retrieval.request()
        retrieval.answer(status, location: "/u/2")
        let head = try retrieval.request()
        #expect(head.resource == .upload("/u/2") && head.method == .head)
        // Resume data contains the new location only after a permanent redirection.
        #expect(retrieval.resumption?.uri == (status == 308 ? "/u/2" : "/u/1"))

        var append = try ClientUpload.appending()
        _ = try append.request()
        append.answer(status, location: "/u/2")
        let patch = try append.request()
        #expect(patch.resource == .upload("/u/2") && patch.method == .patch)
        #expect(patch.content == .range(from: 0, count: 100))
    }

    @Test("RED-03: no credentials are sent to another origin")
    func credentials() throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        upload.answer(307, location: "https://other/", .otherOrigin)
        #expect(try upload.request().hasCredentials == false)
        _ = upload.announce("https://other/u")
        upload.cut(sent: 50)
        #expect(try upload.request().hasCredentials == false)
    }

    @Test("a redirection of an upload resource to another origin is not followed by default")
    func uploadMoves() throws {
        for relation in [ResolvedLocation.Relation.otherOrigin, .insecure] {
            var upload = ClientUpload.resumed()
            _ = try upload.request()
            upload.answer(308, location: "http://other/u", relation)
            #expect(upload.failed() == .locationUnusable(relation))
            #expect(upload.resumption?.uri == "/u/1")
        }
    }

    @Test("endless redirections and a redirection without Location end the upload")
    func endlessRedirections() throws {
        var upload = ClientUpload.fresh()
        for _ in 0..<6 {
            _ = try upload.request()
            upload.answer(307, location: "/again")
        }
        #expect(upload.failed() == .tooManyRedirects)
        var lost = ClientUpload.fresh()
        _ = try lost.request()
        lost.answer(308)
        #expect(lost.failed() == .refused(308))
    }

    @Test("301, 302 and 303 are not followed", arguments: [301, 302, 303])
    func otherRedirections(status: Int) throws {
        var upload = ClientUpload.fresh()
        _ = try upload.request()
        upload.answer(Status(rawValue: status), location: "/there")
        #expect(upload.failed() == .refused(Status(rawValue: status)))
    }
}
