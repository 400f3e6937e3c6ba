/// A kind of client that cannot pass some cases, whatever it does.
package enum ClientKind: String, Sendable, CaseIterable {
    /// A page in a browser, which does not control how the browser sends requests and which responses it gets.
    case browser

    /// The reason why a client of this kind cannot pass a case; `nil` if it can.
    func obstacle(to id: String) -> String? {
        obstacles.first { obstacle in obstacle.cases.contains { Glob($0).matches(id) } }?.reason
    }

    /// Shell patterns of cases, and the reason why a client of this kind cannot pass them.
    var obstacles: [(reason: String, cases: [String])] {
        switch self {
        case .browser: Self.browserObstacles
        }
    }

    private static let browserObstacles = [
        (
            "browsers do not show interim responses to pages",
            ["4.1.1/lower-progress", "4.2/other-location", "4.2/two-locations"]
        ),
        (
            "browsers send a request again by themselves if a connection that was used before is lost",
            [
                "4.2/location-absolute", "4.2/location-relative", "4.3/cut", "4.3/cut-random-*", "4.3/higher",
                "4.3/lost-answer", "4.4/finish-empty", "4.4.1/offset-reported", "restart/resumes",
            ]
        ),
        ("browsers follow redirections by themselves", ["9110/redirect-for-ever"]),
        ("browsers send all content although there is a response", ["9112/early-answer"]),
    ]
}
