/// Uploads that are interrupted.
enum ResumptionScenarios {
    static func all(seed: UInt64) -> [Scenario] { cuts(seed: seed) + losses + restarts }

    /// Cuts at random places: the same ones for the same seed.
    private static func cuts(seed: UInt64) -> [Scenario] {
        var random = SplitMix(state: seed)
        var all: [Scenario] = [
            .upload(
                "4.3/cut", .should, "4.3",
                "An upload whose connection is lost continues at the offset that the server reports.",
                covers: "CLI-12 CLI-08",
                script: { $1.cut($0, &$2, at: 100_000) },
                verify: { try verifyResumed($0) })
        ]
        for count in [1, 2, 4] {
            let points = (0..<count).map { _ in Int64.random(in: 1..<Scenario.usualSize, using: &random) }.sorted()
            all.append(
                .upload(
                    "4.3/cut-random-\(count)", .should, "4.3",
                    "An upload survives \(count) cut\(count == 1 ? "" : "s") at random places.", covers: "CLI-12",
                    script: { $1.cut($0, &$2, at: points) },
                    verify: { try verifyResumed($0) }))
        }
        return all
    }

    @Sendable private static func verifyResumed(_ record: ScenarioRecord) throws {
        try record.expectSuccess()
        let resumed = record.of(.append).contains { $0.start > 0 && $0.status != nil && $0.received > 0 }
        try record.expect(resumed, "an append at the offset reported", "everything was sent again")
        try record.expectThrift(0)
    }

    private static let losses: [Scenario] = [
        .upload(
            "4.3/stall", .should, "4.3", "A server that falls silent amid the content is given up and asked again.",
            size: 8 << 20,
            script: { request, stage, reaction in
                if stage.step == 0, request.reaches(1_000_000) {
                    stage.step = 1
                    reaction.stall(after: 1_000_000 - request.start)
                }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.3/lost-answer", .should, "4.4.2",
            "Where the final response is lost the offset is asked for, and nothing is sent again.", covers: "CLI-38",
            script: { request, stage, reaction in
                if stage.step == 0, reaction.completes {
                    stage.step = 1
                    reaction.ending = .reset
                }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expectThrift(0)
                try record.expect(
                    record.stage.uploads.completions == 1, "one completion", "\(record.stage.uploads.completions)")
            }),
        .upload(
            "4.3/no-response", .must, "RFC 9112 8",
            "A connection that is closed after all content without a response is no success.",
            script: { request, stage, reaction in
                loseEnd(request, &stage, &reaction)
                if case .reset = reaction.ending { reaction.ending = .end }
            },
            verify: { try $0.expectHonesty() }),
        .upload(
            "4.3/silent-answer", .should, "4.4.2",
            "Where the final response does not come the offset is asked for, and nothing is sent again.",
            covers: "CLI-38",
            script: { request, stage, reaction in
                if stage.step == 0, reaction.completes {
                    stage.step = 1
                    reaction.ending = .stall
                }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expectThrift(0)
            }),
        .upload(
            "4.4/finish", .must, "4.4.1",
            "An upload of which all bytes have arrived, and which is not complete, is neither taken for complete nor sent more.",
            script: { loseEnd($0, &$1, &$2) },
            verify: { record in
                try record.expectHonesty()
                let reported = record.of(.retrieval).first { $0.toldOffset == record.size && $0.toldComplete == false }
                guard let reported else { throw record.skip("the client does not ask for the offset") }
                let more = record.after(reported, .append).filter { $0.upload == reported.upload && $0.bearsContent }
                try record.expectNone(more, "no content to an upload that has all of it")
            }),
        .upload(
            "4.4/finish-empty", .should, "4.4.1",
            "An upload of which all bytes have arrived, and which is not complete, is finished by an append without content.",
            covers: "CLI-12",
            script: { loseEnd($0, &$1, &$2) },
            verify: { record in
                try record.expectSuccess()
                try record.expectThrift(0)
            }),
        .upload(
            "4.1.2/error-resumable", .should, "4.2.2",
            "5xx without completion is followed by a retrieval and the remainder.",
            covers: "CLI-12",
            script: { request, stage, reaction in
                if stage.step == 0, request.reaches(100_000) {
                    stage.step = 1
                    reaction.takes = 100_000 - request.start
                    reaction.completes = false
                    reaction.ending = .answer(.init(status: 503, fields: [request.profile.completeness(false)]))
                }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.3/error-on-retrieval", .should, "4.3",
            "A retrieval that fails with 503 is tried again; the upload is not created a second time.",
            covers: "CLI-12",
            script: { request, stage, reaction in
                if request.isFirst(.retrieval) { return reaction.refuse(503) }
                stage.cut(request, &reaction, at: 100_000)
            },
            verify: { record in
                try record.expectSuccess()
                let creations = record.of(.creation, .plain).count
                try record.expect(creations == 1, "one creation", "\(creations)")
            }),
        .upload(
            "9110/retry-after", .should, "RFC 9110 10.2.3", "Retry-After is waited for.", covers: "CLI-13",
            script: { request, stage, reaction in
                if request.isFirst(.retrieval) { return reaction.refuse(503, [("Retry-After", "1")]) }
                stage.cut(request, &reaction, at: 100_000)
            },
            verify: { record in
                try record.expectHonesty()
                guard let asked = record.requests.first(where: { $0.isFirst(.retrieval) }) else {
                    throw record.skip("the client does not ask for the offset")
                }
                try record.expectPause(after: asked, milliseconds: 900)
            }),
    ]

    /// All bytes arrive, and nothing is made of them.
    @Sendable private static func loseEnd(_ request: ScriptedRequest, _ stage: inout Stage, _ reaction: inout Reaction)
    {
        guard stage.step == 0, reaction.completes, request.bearsContent else { return }
        stage.step = 1
        reaction.completes = false
        reaction.ending = .reset
    }

    private static let restarts: [Scenario] = [
        .upload(
            "restart/goes-on", .should, "4.3", "After the command was killed, the next run resumes the transfer.",
            covers: "CLI-35",
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if case .reset = reaction.ending { reaction.ending = .kill }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expect(record.of(.creation).count == 1, "one creation", "\(record.of(.creation).count)")
                try record.expectThrift(0)
            }),
        .upload(
            "restart/changed-file", .must, "4.3.1",
            "A file that was changed after the command was killed is not appended to what had arrived.",
            covers: "CLI-35 CLI-09", interlude: .changesFile,
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if case .reset = reaction.ending { reaction.ending = .kill }
            },
            verify: { record in
                let mixed = record.of(.append).filter { $0.run > 1 && $0.start > 0 && $0.received > 0 }
                try record.expectNone(mixed, "no bytes of another file behind those of the first")
                try record.expect(record.endings.last != .timedOut, "the command ends in time", "it does not")
            }),
    ]
}
