/// Scenarios of interrupted uploads.
enum ResumptionScenarios {
    static func all(seed: UInt64) -> [Scenario] { cuts(seed: seed) + losses + restarts }

    /// Scenarios in which connections are cut at random offsets. The offsets depend on the seed.
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
                    "An upload is resumed after \(count) cut\(count == 1 ? "" : "s") at random offsets.",
                    covers: "CLI-12",
                    script: { $1.cut($0, &$2, at: points) },
                    verify: { try verifyResumed($0) }))
        }
        return all
    }

    @Sendable private static func verifyResumed(_ record: ScenarioRecord) throws {
        try record.expectSuccess()
        let resumed = record.of(.append).contains { $0.start > 0 && $0.status != nil && $0.received > 0 }
        try record.expect(resumed, "an append at the offset reported", "all content was sent again")
        try record.expectRepeatedBytes(atMost: 0)
    }

    private static let losses: [Scenario] = [
        .upload(
            "4.3/stall", .should, "4.3",
            "After a time without bytes the client closes the connection and sends a new request.",
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
            "If the final response is lost, the client retrieves the offset and sends no content again.",
            covers: "CLI-38",
            script: { request, stage, reaction in
                if stage.step == 0, reaction.isCompleting {
                    stage.step = 1
                    reaction.ending = .reset
                }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expectRepeatedBytes(atMost: 0)
                try record.expect(
                    record.stage.uploads.completions == 1, "one completion", "\(record.stage.uploads.completions)")
            }),
        .upload(
            "4.3/no-response", .must, "RFC 9112 8",
            "A connection that is closed after all content without a response is not a success.",
            script: { request, stage, reaction in
                loseCompletion(request, &stage, &reaction)
                if case .reset = reaction.ending { reaction.ending = .end }
            },
            verify: { try $0.expectTruthfulStatus() }),
        .upload(
            "4.3/silent-answer", .should, "4.4.2",
            "If the final response does not arrive, the client retrieves the offset and sends no content again.",
            covers: "CLI-38",
            script: { request, stage, reaction in
                if stage.step == 0, reaction.isCompleting {
                    stage.step = 1
                    reaction.ending = .stall
                }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expectRepeatedBytes(atMost: 0)
            }),
        .upload(
            "4.4/finish", .must, "4.4.1",
            "If all bytes have arrived and the upload is not complete, the client neither succeeds nor sends more content.",
            script: { loseCompletion($0, &$1, &$2) },
            verify: { record in
                try record.expectTruthfulStatus()
                let reported = record.of(.retrieval).first {
                    $0.reportedOffset == record.size && $0.isReportedComplete == false
                }
                guard let reported else { throw record.skip("the client does not retrieve the offset") }
                let more = record.after(reported, .append).filter { $0.upload == reported.upload && $0.hasContent }
                try record.expectNone(more, "no content to an upload that has all content")
            }),
        .upload(
            "4.4/finish-empty", .should, "4.4.1",
            "If all bytes have arrived and the upload is not complete, the client completes it by an append without content.",
            covers: "CLI-12",
            script: { loseCompletion($0, &$1, &$2) },
            verify: { record in
                try record.expectSuccess()
                try record.expectRepeatedBytes(atMost: 0)
            }),
        .upload(
            "4.1.2/error-resumable", .should, "4.2.2",
            "After a 5xx response with ?0 the client retrieves the offset and sends the remainder.",
            covers: "CLI-12",
            script: { request, stage, reaction in
                if stage.step == 0, request.reaches(100_000) {
                    stage.step = 1
                    reaction.readLimit = 100_000 - request.start
                    reaction.isCompleting = false
                    reaction.ending = .answer(.init(status: 503, fields: [request.profile.completeness(false)]))
                }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.3/error-on-retrieval", .should, "4.3",
            "A retrieval that fails with 503 is repeated; the upload is not created a second time.",
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
            "9110/retry-after", .should, "RFC 9110 10.2.3", "The client waits for the time of Retry-After.",
            covers: "CLI-13",
            script: { request, stage, reaction in
                if request.isFirst(.retrieval) { return reaction.refuse(503, [("Retry-After", "1")]) }
                stage.cut(request, &reaction, at: 100_000)
            },
            verify: { record in
                try record.expectTruthfulStatus()
                guard let retrieval = record.requests.first(where: { $0.isFirst(.retrieval) }) else {
                    throw record.skip("the client does not retrieve the offset")
                }
                try record.expectPause(after: retrieval, milliseconds: 900)
            }),
    ]

    /// Stores all bytes, and resets the connection without completing the upload.
    @Sendable private static func loseCompletion(
        _ request: ScriptedRequest, _ stage: inout Stage, _ reaction: inout Reaction
    ) {
        guard stage.step == 0, reaction.isCompleting, request.hasContent else { return }
        stage.step = 1
        reaction.isCompleting = false
        reaction.ending = .reset
    }

    private static let restarts: [Scenario] = [
        .upload(
            "restart/resumes", .should, "4.3", "After the command was killed, its next run resumes the transfer.",
            covers: "CLI-35",
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if case .reset = reaction.ending { reaction.ending = .kill }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expect(record.of(.creation).count == 1, "one creation", "\(record.of(.creation).count)")
                try record.expectRepeatedBytes(atMost: 0)
            }),
        .upload(
            "restart/changed-file", .must, "4.3.1",
            "If the file was changed after the command was killed, its bytes are not appended to those of the old file.",
            covers: "CLI-35 CLI-09", interlude: .changesFile,
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if case .reset = reaction.ending { reaction.ending = .kill }
            },
            verify: { record in
                let mixed = record.of(.append).filter { $0.run > 1 && $0.start > 0 && $0.received > 0 }
                try record.expectNone(mixed, "no bytes of the changed file after bytes of the old file")
                try record.expect(
                    record.endings.last != .timedOut, "the command ends within the time limit", "it was killed")
            }),
    ]
}
