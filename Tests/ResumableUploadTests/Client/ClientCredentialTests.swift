import HTTPSemantics
import ResumableUpload
import Testing

@Suite("Client: new credentials after a 401")
struct ClientCredentialTests {
    private let v8 = Dialect.interop8

    /// Whether the next step is a refresh of the credentials.
    private func refreshes(_ upload: ClientUpload) -> Bool {
        var ahead = upload
        if case .refreshCredentials = ahead.next(now: 0) { return true }
        return false
    }

    private func renewable(_ upload: ClientUpload) -> ClientUpload {
        var upload = upload
        upload.credentials.source = .refresh
        return upload
    }

    @Test("after a 401 to an append or to a retrieval, credentials are refreshed and the offset is retrieved")
    func uploadResource() throws {
        for start in [try ClientUpload.appending(), ClientUpload.resumed()] {
            var upload = renewable(start)
            _ = try upload.request()
            upload.answer(401, sent: 40)
            #expect(refreshes(upload))
            upload.credentialsRefreshed(isFresh: true)
            #expect(try upload.request().kind == .retrieve)
            upload.answer(204, v8.head(complete: false, offset: 30))
            #expect(try upload.request().content == .range(from: 30, count: 70))
        }
    }

    @Test("after a 401 a creation is repeated; if an upload resource was announced, its offset is retrieved instead")
    func creation() throws {
        for isAnnounced in [false, true] {
            var upload = renewable(.fresh())
            _ = try upload.request()
            if isAnnounced { _ = upload.announce() }
            upload.answer(401, sent: 50)
            #expect(refreshes(upload))
            upload.credentialsRefreshed(isFresh: true)
            #expect(try upload.request().kind == (isAnnounced ? .retrieve : .create))
        }
    }

    @Test("a plain upload, the discovery of limits and a deletion are repeated with new credentials")
    func otherRequests() throws {
        let plain = renewable(.fresh(style: .plain))
        let automatic = renewable(.fresh(style: .automatic, length: 100 << 20))
        var canceled = renewable(.resumed())
        canceled.cancel()
        for (kind, upload) in [(ClientRequest.Kind.create, plain), (.discover, automatic), (.cancel, canceled)] {
            var upload = upload
            #expect(try upload.request().kind == kind)
            upload.answer(401)
            #expect(refreshes(upload))
            upload.credentialsRefreshed(isFresh: true)
            #expect(try upload.request().kind == kind)
        }

    }

    @Test("a second 401 after a refresh ends the upload, even if a retrieval succeeded in between")
    func second() throws {
        for isRetrieved in [false, true] {
            var upload = renewable(try .appending())
            _ = try upload.request()
            upload.answer(401)
            _ = upload.next(now: 0)
            upload.credentialsRefreshed(isFresh: true)
            _ = try upload.request()
            if isRetrieved {
                upload.answer(204, v8.head(complete: false, offset: 0))
                #expect(try upload.request().kind == .append)
            }
            upload.answer(401)
            #expect(upload.failed() == .unauthorized(401))
            #expect(upload.resumption != nil)
        }
    }

    @Test("after progress, after a retry, and if newer credentials existed already, another refresh is allowed")
    func again() throws {
        for change in ["progress", "retry", "existing"] {
            var upload = renewable(try .appending())
            _ = try upload.request()
            upload.answer(401)
            upload.credentialsRefreshed(isFresh: change != "existing")
            _ = try upload.request()
            switch change {
            case "progress":
                upload.answer(204, v8.head(complete: false, offset: 10))
                _ = try upload.request()
            case "retry":
                upload.cut()
                _ = try upload.request()
            default: break
            }
            upload.answer(401)
            #expect(refreshes(upload), "\(change)")
        }
    }

    @Test(
        "a 401 that is the response to the complete upload, a 403 and a 407 cause no refresh",
        arguments: [401, 403, 407])
    func final(status: Int) throws {
        var upload = renewable(.fresh())
        _ = try upload.request()
        upload.answer(Status(rawValue: status), status == 401 ? v8.head(complete: true) : Fields(), sent: 100)
        #expect(!refreshes(upload))
    }

    @Test(
        "credentials of a handler are used after a 401 or 407, again and again until it has none",
        arguments: [401, 407])
    func handler(status: Int) throws {
        var upload = try ClientUpload.appending()
        for isAfterRefresh in [false, true, false] {
            _ = try upload.request()
            upload.credentials.source = .handler
            upload.answer(Status(rawValue: status))
            #expect(refreshes(upload))
            upload.credentialsRefreshed(isFresh: isAfterRefresh)
        }
        _ = try upload.request()
        upload.credentials.source = nil
        upload.answer(Status(rawValue: status))
        #expect(upload.failed() == .unauthorized(Status(rawValue: status)))
    }

    @Test("an upload ends after one refresh if the server answers every request with 401")
    func endless() {
        for style in CreationStyle.allCases {
            var upload = renewable(.fresh(style: style, length: 100 << 20))
            var refreshes = 0
            var isOver = false
            for _ in 0..<20 where !isOver {
                switch upload.next(now: 0) {
                case .send: upload.answer(401)
                case .refreshCredentials:
                    refreshes += 1
                    upload.credentialsRefreshed(isFresh: true)
                case .wait: break
                case .failed, .finished: isOver = true
                }
            }
            #expect(isOver && refreshes == 1)
        }
    }
}
