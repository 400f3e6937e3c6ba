import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// A bearer token that a scripted server replaces, and the token of a client.
final class RotatingToken: Sendable {
    private struct State {
        var server = 1
        var client = 1
        var refreshes = 0
    }

    private let state = Monitor(State())

    /// The number of refreshes.
    var refreshes: Int { state.withLock { $0.refreshes } }

    /// Replaces the token that the server accepts.
    func rotate() { state.withLock { $0.server += 1 } }

    /// Gives the client the token that the server accepts.
    func refresh() {
        state.withLock { state in
            state.refreshes += 1
            state.client = state.server
        }
    }

    func isAccepted(_ request: ReceivedRequest) -> Bool {
        request.fields["Authorization"] == state.withLock { Self.value($0.server) }
    }

    /// Responds to a request without the token of the server.
    func reject(_ reply: Reply) throws {
        try reply.respond(401, ["WWW-Authenticate": "Bearer", "Connection": "close"])
    }

    func configure(_ configuration: inout TransferClient.Configuration) {
        configuration.authorize = { [self] request in
            request.fields.set("Authorization", state.withLock { Self.value($0.client) })
        }
        configuration.refreshCredentials = { [self] response in
            if response.fields["WWW-Authenticate"] == "Bearer" { refresh() }
        }
    }

    private static func value(_ number: Int) -> String { "Bearer token-number-\(number)-0123456789" }
}
