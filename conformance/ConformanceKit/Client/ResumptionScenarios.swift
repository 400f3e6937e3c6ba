/// Uploads that are interrupted, and offsets that are told.
enum ResumptionScenarios {
    static func all(seed: UInt64) -> [Scenario] { cuts(seed: seed) + losses + offsets + restarts }

    /// Cuts at random places: the same ones for the same seed.
    private static func cuts(seed: UInt64) -> [Scenario] {
        var random = SplitMix(state: seed)
        var all: [Scenario] = [
            .upload(
                "4.3/cut", .should, "4.3",
                "An upload whose connection is lost goes on at the offset that the server tells.",
                covers: "CLI-12 CLI-08",
                script: { $1.cut($0, &$2, at: 100_000) },
                judge: { try judgeResumed($0) })
        ]
        for count in [1, 2, 4] {
            let points = (0..<count).map { _ in Int64.random(in: 1..<Scenario.usualSize, using: &random) }.sorted()
            all.append(
                .upload(
                    "4.3/cut-random-\(count)", .should, "4.3",
                    "An upload survives \(count) cut\(count == 1 ? "" : "s") at random places.", covers: "CLI-12",
                    script: { $1.cut($0, &$2, at: points) },
                    judge: { try judgeResumed($0) }))
        }
        return all
    }

    @Sendable private static func judgeResumed(_ record: PlayRecord) throws {
        try record.expectSuccess()
        let resumed = record.of(.append).contains { $0.start > 0 && $0.status != nil && $0.received > 0 }
        try record.expect(resumed, "an append at the offset told", "everything was sent again")
        try record.expectThrift(0)
    }

    private static let losses: [Scenario] = [
        .upload(
            "4.3/stall", .should, "4.3", "A server that falls silent amid the content is given up and asked again.",
            size: 32 << 20,
            script: { request, stage, reaction in
                if stage.step == 0, request.reaches(1_000_000) {
                    stage.step = 1
                    reaction.stall(after: 1_000_000 - request.start)
                }
            },
            judge: { try $0.expectSuccess() }),
        .upload(
            "4.3/lost-answer", .should, "4.4.2",
            "Where the final response is lost the offset is asked for, and nothing is sent again.", covers: "CLI-38",
            script: { request, stage, reaction in
                if stage.step == 0, reaction.completes {
                    stage.step = 1
                    reaction.ending = .reset
                }
            },
            judge: { record in
                try record.expectSuccess()
                try record.expectThrift(0)
                try record.expect(
                    record.stage.uploads.completions == 1, "one completion", "\(record.stage.uploads.completions)")
            }),
        .upload(
            "4.4/finish", .must, "4.4.1",
            "An upload of which all bytes have arrived, and which is not complete, is finished by an append without content.",
            covers: "CLI-27",
            script: { request, stage, reaction in
                if stage.step == 0, reaction.completes, request.bearsContent {
                    stage.step = 1
                    reaction.completes = false
                    reaction.ending = .reset
                }
            },
            judge: { record in
                try record.expectSuccess()
                try record.expectThrift(0)
            }),
        .upload(
            "4.1.2/error-resumable", .should, "4.2.2",
            "5xx without completion is followed by a retrieval and the rest.",
            covers: "CLI-12",
            script: { request, stage, reaction in
                if stage.step == 0, request.reaches(100_000) {
                    stage.step = 1
                    reaction.takes = 100_000 - request.start
                    reaction.completes = false
                    reaction.ending = .answer(.init(status: 503, fields: [request.profile.completeness(false)]))
                }
            },
            judge: { try $0.expectSuccess() }),
        .upload(
            "4.3/error-on-retrieval", .should, "4.3", "A retrieval that fails with 503 is tried again.",
            covers: "CLI-12",
            script: { request, stage, reaction in
                if request.isFirst(.retrieval) { return reaction.refuse(503) }
                stage.cut(request, &reaction, at: 100_000)
            },
            judge: { try $0.expectSuccess() }),
        .upload(
            "9110/retry-after", .should, "RFC 9110 10.2.3", "Retry-After is waited for.", covers: "CLI-13",
            script: { request, stage, reaction in
                if request.isFirst(.retrieval) { return reaction.refuse(503, [("Retry-After", "1")]) }
                stage.cut(request, &reaction, at: 100_000)
            },
            judge: { record in
                try record.expectHonesty()
                guard let asked = record.requests.first(where: { $0.isFirst(.retrieval) }) else {
                    throw record.skip("the client does not ask for the offset")
                }
                guard let next = record.after(asked).first else { return }
                let waited = (next.arrivedAt - (asked.answeredAt ?? asked.arrivedAt)) / 1_000_000
                try record.expect(waited >= 900, "a second without a request", "\(next.summary) after \(waited) ms")
            }),
    ]

    private static let offsets: [Scenario] =
        [
            .upload(
                "4.1.1/lower", .must, "4.1.1", "An offset lower than one that was told before is a failure.",
                covers: "CLI-33",
                script: { request, stage, reaction in
                    if request.kind == .creation {
                        let fields = request.profile.versionFields + [("Upload-Offset", "80000")]
                        if request.bearsContent {
                            reaction.interim.append(.init(status: 104, fields: fields, at: 80_000))
                        }
                    }
                    stage.cut(request, &reaction, at: 100_000)
                    if stage.step == 1, request.kind == .append, request.start > 0, request.start < 80_000 {
                        stage.step = 2
                    }
                    if request.kind == .retrieval {
                        stage.pretend(40_000)
                        reaction.set("Upload-Offset", "40000")
                    }
                },
                judge: { record in
                    guard record.of(.creation).contains(where: \.bearsContent) else {
                        throw record.skip("the client sends no content with the creation, and was told no offset")
                    }
                    let resumed = record.of(.append).filter { $0.start == 40_000 && $0.received > 0 }
                    try record.expectNone(resumed, "nothing sent to an upload that lost acknowledged bytes")
                    try record.expectFailure("the server lost what it had acknowledged")
                }),
            .upload(
                "4.3/higher", .should, "4.3.1", "An offset beyond what was sent is accepted, as the file has the data.",
                covers: "CLI-10",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 10_000)
                    if request.isFirst(.retrieval) {
                        stage.pretend(200_000)
                        reaction.set("Upload-Offset", "200000")
                    }
                },
                judge: { record in
                    try record.expectSuccess()
                    try record.expect(
                        record.of(.append).contains { $0.start == 200_000 }, "an append at 200000",
                        record.of(.append).last?.summary ?? "no append")
                }),
            .upload(
                "4.3/impossible", .must, "4.3.1", "An offset beyond the end of the file ends the upload.",
                covers: "CLI-09",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set("Upload-Offset", "\(stage.size + 1000)") }
                },
                judge: { record in
                    try record.expectNone(
                        record.of(.append).filter { $0.start > 0 && $0.start != 100_000 || $0.start > record.size },
                        "no append at an offset that cannot be")
                    try record.expectFailure("the offset is beyond the end of the file")
                    try record.expectBounded()
                }),
            .upload(
                "4.1.2/complete-on-retrieval", .must, "4.1",
                "Upload-Complete of another type than Boolean does not make an upload complete.", covers: "STF-13",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set(request.profile.completenessName, "1") }
                },
                judge: { try $0.expectHonesty() }),
        ]
        + [
            ("decimal", "100000.0"), ("string", "\"100000\""), ("plus", "+100000"), ("negative", "-1"),
            ("two", "100000, 100000"), ("hexadecimal", "0x186A0"),
        ].map { name, value in
            .upload(
                "9651/offset-\(name)", .must, "4.1",
                "Upload-Offset: \(value) is as good as absent: nobody goes on with it.", covers: "STF-13",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set("Upload-Offset", value) }
                },
                judge: { record in
                    try record.expectHonesty()
                    try record.expectBounded()
                    let first = record.of(.retrieval).first
                    if let first {
                        let used = record.after(first, .append).filter { $0.upload == first.upload }
                        try record.expectNone(used, "no append after an offset that is none")
                    }
                })
        }

    private static let restarts: [Scenario] = [
        .upload(
            "restart/goes-on", .should, "4.3", "After the command was killed it goes on when it is run again.",
            covers: "CLI-35",
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if case .reset = reaction.ending { reaction.ending = .kill }
            },
            judge: { record in
                try record.expectSuccess()
                try record.expect(record.of(.creation).count == 1, "one creation", "\(record.of(.creation).count)")
                try record.expectThrift(0)
            }),
        .upload(
            "restart/changed-file", .should, "4.3.1",
            "A file that was changed after the command was killed is not appended to what had arrived.",
            covers: "CLI-35 CLI-09", interlude: .changesFile,
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if case .reset = reaction.ending { reaction.ending = .kill }
            },
            judge: { record in
                let mixed = record.of(.append).filter { $0.run > 1 && $0.start > 0 && $0.received > 0 }
                try record.expectNone(mixed, "no bytes of another file behind those of the first")
                try record.expect(record.endings.last != .timedOut, "the command ends in time", "it does not")
            }),
    ]
}

/// A generator of random numbers that gives the same ones for the same seed (Steele, Lea and Flood 2014).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
