import HTTPSemantics
import ResumableUpload
import Testing

/// The requests that a client sends for an upload.
@Suite struct ClientRequestTests {
    @Test(
        "CLI-01: every request of a draft version contains the version number, and requests of the RFC contain none",
        arguments: Dialect.allCases)
    func version(dialect: Dialect) throws {
        var upload = ClientUpload.fresh(dialect, style: .careful)
        var requests = [try upload.request()]
        upload.answer(201, dialect.head(complete: false), location: "/u/1")
        requests.append(try upload.request())
        upload.answer(413)
        requests.append(try upload.request())
        upload.answer(204)
        requests.append(try upload.request())
        upload.answer(204, dialect.head(complete: false, offset: 0))
        upload.cancel()
        requests.append(try upload.request())
        #expect(requests.map(\.kind) == [.create, .append, .discover, .retrieve, .cancel])
        #expect(requests.map(\.method) == [.post, .patch, .options, .head, .delete])
        for request in requests {
            #expect(request.fields["Upload-Draft-Interop-Version"] == dialect.interopVersion.map { "\($0)" })
        }
    }

    @Test("the request of a plain upload has only the fields of the caller")
    func plain() throws {
        var upload = ClientUpload.fresh(style: .plain, fields: ["Content-Type": "text/plain"])
        let request = try upload.request()
        #expect(request.fields == ["Content-Type": "text/plain"])
        #expect(request.content == .range(from: 0, count: 100))
        #expect(!request.shouldAwaitInterim)
    }

    @Test("CLI-04: the creation declares a known length from version 5 on", arguments: Dialect.allCases)
    func creation(dialect: Dialect) throws {
        var upload = ClientUpload.fresh(dialect, method: .put, fields: ["Content-Type": "text/plain"])
        let request = try upload.request()
        #expect(request.method == .put)
        #expect(request.resource == .target)
        #expect(request.content == .range(from: 0, count: 100))
        #expect(request.isSentAtOnce(with: request.fields))
        #expect(request.fields["Upload-Length"] == (dialect >= .interop5 ? "100" : nil))
        #expect(dialect.completeness(of: request.fields) == true)
        #expect(request.fields["Content-Type"] == "text/plain")
        #expect(!request.fields.contains("Upload-Offset"))
    }

    @Test("only content that is short and whose request can be repeated does not wait for the upload resource")
    func atOnce() throws {
        let most = ClientRequest.maxSizeAtOnce
        func awaits(
            _ method: Method, _ length: Int64?, _ fields: Fields = Fields(), other: Fields = Fields()
        ) throws -> Bool {
            var upload = ClientUpload.fresh(method: method, length: length, fields: fields)
            let request = try upload.request()
            #expect(request.shouldAwaitInterim)
            var sent = request.fields
            for field in other { sent.append(field.name, field.value) }
            return !request.isSentAtOnce(with: sent)
        }
        #expect(try !awaits(.put, 1) && !awaits(.put, most))
        #expect(try awaits(.put, most + 1) && awaits(.put, nil))
        #expect(try awaits(.put, 1, other: ["If-None-Match": "*"]) && !awaits(.put, 1, other: ["X-If": "1"]))
        // A repetition could create a second file.
        #expect(try awaits(.post, 1))
        // A repetition would fail because of the success of the first request.
        #expect(try awaits(.put, 1, ["If-None-Match": "*"]) && awaits(.put, 1, ["if-match": "\"a\""]))
        #expect(try awaits(.put, 1, ["If-Unmodified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"]))
    }

    @Test("a short upload whose connection is lost before the upload resource is known is sent again completely")
    func repetition() throws {
        var upload = ClientUpload.fresh(method: .put)
        let first = try upload.request()
        upload.cut(sent: 100)
        #expect(try upload.request() == first)
        _ = upload.announce()
        upload.cut(sent: 100)
        #expect(try upload.request().kind == .retrieve)
    }

    @Test(
        "CLI-03 CLI-28: an append has a media type, an offset and completeness, but no fields of the representation",
        arguments: Dialect.allCases)
    func append(dialect: Dialect) throws {
        var upload = ClientUpload.fresh(
            dialect, style: .careful, fields: ["Content-Encoding": "gzip", "Content-Type": "text/plain"])
        let creation = try upload.request()
        #expect(creation.content == .empty)
        #expect(dialect.completeness(of: creation.fields) == false)
        #expect(creation.fields["Content-Encoding"] == "gzip")
        upload.answer(201, dialect.head(complete: false), location: "/u/1")
        let request = try upload.request()
        #expect(request.resource == .upload("/u/1"))
        #expect(request.content == .range(from: 0, count: 100))
        #expect(request.fields["Upload-Offset"] == "0")
        #expect(dialect.completeness(of: request.fields) == true)
        #expect(request.fields["Content-Type"] == (dialect >= .interop6 ? "application/partial-upload" : nil))
        #expect(!request.fields.contains("Content-Encoding"))
        #expect(request.fields.contains("Upload-Incomplete") == (dialect == .interop3))
    }

    @Test("CLI-26: an empty representation is uploaded in one request", arguments: CreationStyle.allCases)
    func empty(style: CreationStyle) throws {
        var upload = ClientUpload.fresh(style: style, length: 0)
        let request = try upload.request()
        #expect(request.content == .empty)
        #expect(!request.shouldAwaitInterim)
        if style != .plain { #expect(request.fields["Upload-Complete"] == "?1") }
        upload.answer(200)
        #expect(upload.outcome()?.isResponseLost == false)
    }

    @Test("CLI-04 CLI-27: if the source ends where an append ended, an append without content completes the upload")
    func streamEnds() throws {
        var upload = try ClientUpload.appending(length: nil, maxRequestContentLength: 50)
        let first = try upload.request()
        #expect(first.content == .remaining(from: 0, atMost: 50))
        #expect(first.fields["Upload-Complete"] == "?0")
        #expect(!first.fields.contains("Upload-Length"))
        upload.answer(204, Dialect.interop8.head(complete: false), sent: 50)
        #expect(try upload.request().content == .remaining(from: 50, atMost: 50))
        upload.answer(204, Dialect.interop8.head(complete: false), sent: 0, hasSourceEnded: true)
        let last = try upload.request()
        #expect(last.content == .empty)
        #expect(last.fields["Upload-Offset"] == "50")
        #expect(last.fields["Upload-Complete"] == "?1")
        #expect(last.fields["Upload-Length"] == "50")
    }

    @Test("CLI-27: if all content was sent in incomplete parts, an append without content completes the upload")
    func allSent() throws {
        var upload = ClientUpload.resumed()
        _ = try upload.request()
        upload.answer(204, Dialect.interop8.head(complete: false, offset: 100))
        let request = try upload.request()
        #expect(request.content == .empty)
        #expect(request.fields["Upload-Offset"] == "100")
        #expect(request.fields["Upload-Complete"] == "?1")
    }

    @Test(
        "CLI-05: the parts add up to the length, and every request declares the same length",
        arguments: 1...30)
    func parts(bound: Int64) throws {
        var upload = try ClientUpload.appending(maxRequestContentLength: bound)
        var end: Int64 = 0
        while end < 100 {
            let request = try upload.request()
            guard case .range(let start, let count) = request.content else { throw Unexpected() }
            #expect(start == end && count <= bound)
            end += count
            #expect(request.fields["Upload-Complete"] == (end == 100 ? "?1" : "?0"))
            #expect(request.fields["Upload-Length"] == "100")
            upload.answer(204, Dialect.interop8.head(complete: end == 100), sent: count)
        }
        #expect(end == 100)
        #expect(upload.outcome()?.response.status == 204)
    }

    @Test(
        "CLI-16: the sizes of parts are within the server's limits, and only the last part may be below the minimum")
    func bounds() throws {
        var upload = try ClientUpload.appending(
            length: 33, maxRequestContentLength: 2, limit: "min-append-size=5, max-append-size=10")
        // The minimum of the server has precedence over the maximum of the caller.
        for start in stride(from: Int64(0), to: 30, by: 5) {
            #expect(try upload.request().content == .range(from: start, count: 5))
            upload.answer(204, Dialect.interop8.head(complete: false), sent: 5)
        }
        #expect(try upload.request().content == .range(from: 30, count: 3))
    }

    @Test("CLI-16: after a cut within a part the next incomplete part is not below the minimum")
    func afterCut() throws {
        var upload = ClientUpload.resumed(length: 33, limits: UploadLimits(maxAppendSize: 10, minAppendSize: 5))
        _ = try upload.request()
        upload.answer(204, Dialect.interop8.head(complete: false, offset: 7))
        #expect(try upload.request().content == .range(from: 7, count: 10))
    }

    @Test("if the caller sets a maximum size of parts, the creation has no content")
    func ownBound() throws {
        var upload = ClientUpload.fresh(maxRequestContentLength: 99)
        let request = try upload.request()
        #expect(request.content == .empty)
        #expect(request.fields["Upload-Complete"] == "?0")
    }
}
