import HTTPSemantics
import ResumableUpload
import Testing

@testable import ResumableTransfer

@Suite("The state machine of a download: refusals, further tries, redirections")
struct DownloadMachineRetryTests {
    // MARK: Refusals

    @Test(
        "a final status ends the download, and the received bytes are kept",
        arguments: [400, 404, 405, 406, 410, 412, 451, 501, 505] as [Status])
    func refused(status: Status) {
        var machine = DownloadMachine.sample()
        #expect(machine.reception(status, ["ETag": "\"a\""]) == .refusal)
        machine.answer(status, [:])
        #expect(machine.failure == .refused(status))
        #expect(machine.position == 40)
        #expect(machine.representation?.validator != nil)
    }

    @Test(
        "a redirection that cannot be followed interrupts a download that has bytes, and ends one that has none",
        arguments: [300, 302, 304, 305] as [Status])
    func unusableRedirection(status: Status) {
        var machine = DownloadMachine.sample()
        machine.answer(status, [:])
        #expect(machine.failure == nil && machine.position == 40)
        #expect(machine.wait != nil)
        var fresh = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        fresh.answer(status, [:])
        #expect(fresh.failure == .refused(status))
    }

    @Test("401, 403 and 407 fail with the code of missing authorization", arguments: [401, 403, 407] as [Status])
    func unauthorized(status: Status) {
        var machine = DownloadMachine.sample()
        machine.answer(status, [:])
        #expect(machine.failure == .unauthorized(status))
    }

    // MARK: Further tries

    @Test(
        "after the status of a temporary failure the download waits and tries again",
        arguments: [408, 425, 429, 500, 502, 503, 504] as [Status])
    func transient(status: Status) {
        var machine = DownloadMachine.sample { $0.delays = [.seconds(3)] }
        machine.answer(status, [:])
        #expect(machine.wait == 3)
        _ = machine.next()
        #expect(machine.nextRequest()?.start == 40)
    }

    @Test("a retry after a 503 waits first; a retry after a lost connection does not")
    func refusedWait() {
        var refused = DownloadMachine.sample { $0.delays = [.zero, .seconds(3)] }
        refused.answer(503, [:])
        #expect(refused.wait == 3)
        var lost = DownloadMachine.sample { $0.delays = [.zero, .seconds(3)] }
        _ = lost.nextRequest()
        lost.interrupted(.connection)
        #expect(lost.wait == 0)
    }

    @Test(
        "the wait is as long as Retry-After demands, up to the maximum",
        arguments: [("7", 7.0), ("100000", 600), ("x", 3)])
    func retryAfter(value: String, seconds: Double) {
        var machine = DownloadMachine.sample { $0.delays = [.seconds(3)] }
        machine.answer(503, ["Retry-After": value])
        #expect(machine.wait == seconds)
    }

    @Test("attempts without progress are counted, and progress resets the count")
    func exhaustion() {
        var machine = DownloadMachine.sample { $0.maxRetriesWithoutProgress = 2 }
        let part: Fields = ["ETag": "\"a\"", "Content-Range": "bytes 40-99/100"]
        for _ in 0..<2 {
            _ = machine.nextRequest()
            machine.interrupted(.connection)
            #expect(machine.wait == 0)
            _ = machine.next()
        }
        machine.answer(206, part, position: 41, ending: .cut(.stall))
        let fields: Fields = ["ETag": "\"a\"", "Content-Range": "bytes 41-99/100"]
        _ = machine.next()
        machine.answer(206, fields, position: 41, ending: .cut(.stall))
        #expect(machine.wait == 0)
        _ = machine.next()
        machine.answer(206, fields, position: 41, ending: .cut(.stall))
        #expect(machine.failure == .exhausted(lastReason: .stall))
    }

    @Test("bytes that are received again do not count as progress")
    func noProgress() {
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        var tries = 0
        while machine.failure == nil, tries < 100 {
            tries += 1
            if machine.wait != nil { _ = machine.next() }
            // Without a validator every attempt starts at zero; each is cut at the same offset.
            machine.answer(200, ["Content-Length": "100"], position: 60, ending: .cut(.connection))
        }
        #expect(tries == 1 + RetryPolicy().maxRetriesWithoutProgress)
        #expect(machine.representation == nil && machine.position == 0)
    }

    @Test("a server that never sends the requested part ends the download")
    func neverFits() {
        var machine = DownloadMachine.sample()
        var requests = 0
        while machine.failure == nil, requests < 100 {
            requests += 1
            if machine.wait != nil { _ = machine.next() }
            guard let request = machine.nextRequest() else { continue }
            if request.start == 0 {
                machine.answer(200, ["ETag": "\"a\""], position: 40, ending: .cut(.connection))
            } else {
                machine.answer(206, ["ETag": "\"a\"", "Content-Range": "bytes 0-99/100"])
            }
        }
        #expect(requests < 20)
    }

    @Test("a connection that must not be used again ends the download without a retry")
    func unusable() {
        var machine = DownloadMachine.sample()
        _ = machine.nextRequest()
        machine.interrupted(.unusableConnection)
        #expect(machine.failure == .exhausted(lastReason: .unusableConnection))
    }

    // MARK: Redirections

    private func location(
        _ uri: String, _ relation: ResolvedLocation.Relation = .sameOrigin
    ) -> ResolvedLocation { ResolvedLocation(uri: uri, relation: relation) }

    @Test("RED-02: redirections of a download are followed", arguments: [301, 302, 303, 307, 308] as [Status])
    func redirection(status: Status) {
        var machine = DownloadMachine.sample()
        machine.answer(status, [:], location: location("http://h/b"))
        let request = machine.nextRequest()
        #expect(request?.resource == .other("http://h/b"))
        #expect(request?.start == 40)
        #expect(request?.hasCredentials == true)
    }

    @Test("RED-03: a redirection to another origin drops the credentials, even if another redirection leads back")
    func credentials() {
        var machine = DownloadMachine.sample()
        machine.answer(302, [:], location: location("http://other/b", .otherOrigin))
        #expect(machine.nextRequest()?.hasCredentials == false)
        machine.answer(302, [:], location: location("http://h/c", .otherOrigin))
        #expect(machine.nextRequest()?.hasCredentials == false)
        machine.answer(302, [:], location: location("http://h/d"))
        #expect(machine.nextRequest()?.hasCredentials == false)
        // A new attempt begins at the target, with credentials.
        machine.interrupted(.connection)
        _ = machine.next()
        let again = machine.nextRequest()
        #expect(again?.resource == .target && again?.hasCredentials == true)
    }

    @Test("RED-02: ten redirections are followed, and no more")
    func loop() {
        var machine = DownloadMachine(retry: RetryPolicy(), random: { 0 })
        for number in 1...10 {
            machine.answer(302, [:], location: location("http://h/\(number)"))
            #expect(machine.failure == nil)
        }
        machine.answer(302, [:], location: location("http://h/11"))
        #expect(machine.failure == .tooManyRedirects)
    }

    @Test("a redirection from https to http is refused")
    func unusableLocation() {
        var insecure = DownloadMachine.sample()
        insecure.answer(302, [:], location: location("http://h/b", .insecure))
        #expect(insecure.failure == .insecureRedirect)
    }
}
