import HTTPSemantics
import ResumableUpload
import Testing

@testable import ResumableTransfer

@Suite("Download machine: new credentials after a 401")
struct DownloadCredentialTests {
    private func refreshes(_ machine: DownloadMachine) -> Bool {
        var ahead = machine
        if case .refreshCredentials = ahead.next() { return true }
        return false
    }

    private func sample() -> DownloadMachine {
        var machine = DownloadMachine.sample()
        machine.credentials.source = .refresh
        return machine
    }

    @Test("a 401 is followed by a refresh, then by a request for the missing bytes")
    func refresh() {
        var machine = sample()
        machine.answer(401, [:])
        #expect(refreshes(machine))
        machine.credentialsRefreshed(isFresh: true)
        #expect(machine.nextRequest()?.start == 40)
    }

    @Test("a second 401 ends the download, even if a redirection came before it")
    func second() {
        for isRedirected in [false, true] {
            var machine = sample()
            machine.answer(401, [:])
            machine.credentialsRefreshed(isFresh: true)
            if isRedirected {
                machine.answer(
                    302, [:], location: ResolvedLocation(uri: "http://a.example/b", relation: .sameOrigin))
            }
            machine.answer(401, [:])
            #expect(machine.failure == .unauthorized(401))
        }
    }

    @Test("after an interruption, and if newer credentials existed already, another refresh is allowed")
    func again() {
        for isInterrupted in [false, true] {
            var machine = sample()
            machine.answer(401, [:])
            machine.credentialsRefreshed(isFresh: isInterrupted)
            if isInterrupted {
                _ = machine.next()
                machine.interrupted(.connection)
                _ = machine.next()
            }
            machine.answer(401, [:])
            #expect(refreshes(machine))
        }
    }

    @Test("credentials of a handler are used after a 401 or 407, until it has none", arguments: [401, 407] as [Status])
    func handler(status: Status) {
        var machine = sample()
        for _ in 0..<3 {
            machine.credentials.source = .handler
            machine.answer(status, [:])
            #expect(refreshes(machine))
            machine.credentialsRefreshed(isFresh: false)
        }
        machine.credentials.source = nil
        machine.answer(status, [:])
        #expect(machine.failure == .unauthorized(status))
    }

    @Test("a 403 and a 407 cause no refresh", arguments: [403, 407] as [Status])
    func others(status: Status) {
        var machine = sample()
        machine.answer(status, [:])
        #expect(machine.failure == .unauthorized(status))
    }
}
