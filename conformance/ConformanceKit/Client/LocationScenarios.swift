/// Scenarios of Location and of redirections.
enum LocationScenarios {
    static let all: [Scenario] = [
        .upload(
            "4.2/two-locations", .should, "4.2.2",
            "If the server sends two Locations for one upload, the client aborts and cancels the upload.",
            covers: "CLI-19", size: 8 << 20,
            script: { request, stage, reaction in
                guard request.kind == .creation else { return }
                let fields = request.profile.versionFields + [("Location", "/decoy")]
                reaction.interim.append(.init(status: 104, fields: fields))
                reaction.readLimit = 1_000_000
                reaction.isCompleting = false
                reaction.ending = .stall
            },
            verify: { record in
                try record.expectFailure("the server sent two Locations")
                try record.expectNone(
                    record.of(.stray).filter { $0.target == "/decoy" && $0.method != "DELETE" },
                    "no request to the second Location")
                try record.expect(!record.of(.cancellation).isEmpty, "DELETE of the upload", "none")
            }),
        .upload(
            "4.2/other-location", .should, "4.2.2",
            "If a final response with ?0 has a different Location than the 104, the client aborts and cancels the upload.",
            covers: "CLI-19",
            script: { request, _, reaction in
                guard request.kind == .creation else { return }
                reaction.isCompleting = false
                let (name, value) = request.profile.completeness(false)
                reaction.set(name, value)
                reaction.set("Location", "/decoy")
            },
            verify: { record in
                try record.expectFailure("the server sent two Locations")
                try record.expectNone(
                    record.of(.stray).filter { $0.target == "/decoy" && $0.method != "DELETE" },
                    "no request to the second Location")
                try record.expect(!record.of(.cancellation).isEmpty, "DELETE of the upload", "none")
            }),
        locates("relative", "A Location that is a relative reference is resolved against the request's URI.") {
            path, _ in
            ".." + path
        },
        locates("absolute", "A Location may be an absolute URI.") { path, origins in origins[0] + path },
        .upload(
            "4.2/location-elsewhere", .must, "4.2.2",
            "The client sends no credentials to a Location at another origin.",
            covers: "RED-03 CLI-31",
            script: { request, stage, reaction in
                if let upload = stage.uploads.uploads.last, stage.origins.count > 1 {
                    reaction.setAnnouncementField("Location", stage.origins[1] + upload.path)
                    if reaction.answer?.fields.contains(where: { $0.0 == "Location" }) == true {
                        reaction.set("Location", stage.origins[1] + upload.path)
                    }
                }
                stage.cut(request, &reaction, at: 100_000)
            }, verify: verifyElsewhere),
        redirects("target-307", 307, "A creation that is redirected with 307 is repeated unchanged, or aborted.") {
            $0.kind == .creation
        },
        redirects("target-308", 308, "A creation that is redirected with 308 is repeated unchanged, or aborted.") {
            $0.kind == .creation
        },
        redirects("retrieval-307", 307, "A retrieval that is redirected keeps its method.") { $0.kind == .retrieval },
        redirects("retrieval-308", 308, "A retrieval that is redirected keeps its method.") { $0.kind == .retrieval },
        redirects("append-307", 307, "An append that is redirected keeps its method and content.") {
            $0.kind == .append
        },
        redirects("append-308", 308, "An append that is redirected keeps its method and content.") {
            $0.kind == .append
        },
        .upload(
            "9110/redirect-elsewhere", .must, "RFC 9110 15.4",
            "After a redirection the client sends no credentials to another origin.", covers: "RED-03",
            script: { request, stage, reaction in
                if request.kind == .creation, request.origin == 0, stage.origins.count > 1 {
                    reaction.silence()
                    reaction.refuse(307, [("Location", stage.origins[1] + request.target)])
                }
            }, verify: verifyElsewhere),
        .upload(
            "9110/redirect-for-ever", .should, "RFC 9110 15.4", "Redirections are followed a limited number of times.",
            covers: "RED-02",
            script: { request, _, reaction in
                if request.kind == .creation || request.kind == .plain {
                    reaction.silence()
                    reaction.refuse(307, [("Location", request.target)])
                }
            },
            verify: { record in
                try record.expectFailure("every creation is redirected")
            }),
    ]

    private static func locates(
        _ id: String, _ requirement: String, _ place: @escaping @Sendable (String, [String]) -> String
    ) -> Scenario {
        .upload(
            "4.2/location-\(id)", .should, "RFC 9110 10.2.2", requirement, covers: "CLI-24",
            script: { request, stage, reaction in
                if request.kind == .creation, let upload = stage.uploads.uploads.last {
                    let location = place(upload.path, stage.origins)
                    reaction.setAnnouncementField("Location", location)
                    if reaction.answer?.fields.contains(where: { $0.0 == "Location" }) == true {
                        reaction.set("Location", location)
                    }
                }
                stage.cut(request, &reaction, at: 100_000)
            },
            verify: { record in
                try record.expectSuccess()
                try record.expectRepeatedBytes(atMost: 0)
            })
    }

    private static func redirects(
        _ id: String, _ status: Int, _ requirement: String,
        _ concerns: @escaping @Sendable (ScriptedRequest) -> Bool
    ) -> Scenario {
        .upload(
            "9110/\(id)", .may, "RFC 9110 15.4", requirement, covers: "RED-02",
            script: { request, stage, reaction in
                if concerns(request), !request.target.hasPrefix("/moved") {
                    reaction.silence()
                    return reaction.refuse(status, [("Location", "/moved" + request.target)])
                }
                stage.cut(request, &reaction, at: 100_000)
            },
            verify: { record in
                try record.expectTruthfulStatus()
                let moved = record.requests.filter { $0.target.hasPrefix("/moved") && $0.kind == .stray }
                try record.expectNone(moved, "the same method at the new URL")
            })
    }

    @Sendable private static func verifyElsewhere(_ record: ScenarioRecord) throws {
        try record.expectTruthfulStatus()
        guard record.requests.first?.hasCredentials == true else {
            throw record.skip("the command sends no credentials (Authorization)")
        }
        try record.expectNone(
            record.requests.filter { $0.origin != 0 && $0.hasCredentials }, "no credentials at another origin")
    }
}
