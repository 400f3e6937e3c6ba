import ConformanceKit
import SystemCalls
import Testing

/// An application that authorizes requests at `/auth`, and responds to all other requests with 201.
final class AuthorizingApplication: Sendable {
    typealias Decision = ScriptedServer.Script

    let origin: ScriptedServer
    private let decision: Monitor<Decision>

    init(_ decision: @escaping Decision = AuthorizingApplication.byUser()) throws {
        let current = Monitor(decision)
        self.decision = current
        origin = try ScriptedServer.origin { request, connection in
            if request.path == "/auth" {
                try current.withLock { $0 }(request, connection)
            } else {
                try connection.respond("201 Made", [("X-Made", "yes")], "made")
            }
        }
    }

    /// Replaces the decision about later requests.
    func decide(_ decision: @escaping Decision) { self.decision.withLock { $0 = decision } }

    /// The requests for decisions.
    var asked: [ReceivedRequest] { origin.requests.filter { $0.path == "/auth" } }
    /// The forwarded requests.
    var served: [ReceivedRequest] { origin.requests.filter { $0.path != "/auth" } }

    /// Allows requests with `Authorization: User NAME SECRET`. Other requests get 401.
    static func byUser(_ fields: [(String, String)] = []) -> Decision {
        { request, connection in
            let words = (request.fields["Authorization"] ?? "").split(separator: " ")
            guard words.count == 3, words[0] == "User" else {
                return try connection.respond(
                    "401 Unauthorized", [("WWW-Authenticate", "User realm=\"app\""), ("Content-Type", "text/x-who")],
                    "who?")
            }
            try connection.respond("200 OK", [("Onward-Principal", String(words[1]))] + fields)
        }
    }

    /// Sends the same response to all requests.
    static func always(_ status: String, _ fields: [(String, String)] = [], _ content: String = "ok") -> Decision {
        { _, connection in try connection.respond(status, fields, content) }
    }

    /// The options of a server in front of this application.
    var options: [String] { ["--route", "/app=\(origin.url)", "--auth-url", "\(origin.url)/auth"] }

    /// Runs `body` with a server in front of this application.
    /// - Parameter options: further options of the server.
    func withServer(_ options: String..., body: (ServerProcess) throws -> Void) throws {
        try EndToEndTests.withServer(options: self.options + options, body)
    }
}

extension Request {
    /// The request with the credentials of a user of the application.
    func by(_ user: String) -> Request { with("Authorization", Self.credentials(of: user)) }

    static func credentials(of user: String) -> String { "User \(user) secret-of-\(user)-0123456789" }
}

extension ServerProcess {
    /// Creates an upload as a user, and returns its location.
    func begin(by user: String, _ target: String, _ content: [UInt8]) throws -> String {
        let response = try exchange(Request.creation(.v8, "PUT", target, complete: false, .bytes(content)).by(user))
        #expect(response.status == 201, "\(response)")
        return try #require(response.location)
    }
}

/// Expects 503 with this code, with which no decision is possible.
func expectUndecided(_ response: Response, _ code: String, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(response.status == 503, "\(response)", sourceLocation: sourceLocation)
    #expect(response.problem?.code == code, "\(response)", sourceLocation: sourceLocation)
    #expect(response.value("Retry-After") == "5", "\(response)", sourceLocation: sourceLocation)
    #expect(response.value("Cache-Control") == "no-store", "\(response)", sourceLocation: sourceLocation)
}
