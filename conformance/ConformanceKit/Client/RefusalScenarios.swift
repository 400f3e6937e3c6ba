/// Scenarios of responses that refuse a request, and of limits.
enum RefusalScenarios {
    static let all: [Scenario] = conflicts + refusals + gone + limits

    private static let conflicts: [Scenario] = [
        .upload(
            "4.4/conflict-offset", .should, "4.4.2",
            "After 409 with an offset the client continues the upload at this offset.",
            covers: "CLI-32 CLI-08",
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if stage.step == 1, request.kind == .append, request.start >= 100_000 {
                    stage.step = 2
                    stage.setFirstOffset(120_000)
                    reaction.refuse(409, [request.profile.completeness(false), ("Upload-Offset", "120000")])
                }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expect(
                    record.of(.append).contains { $0.start == 120_000 }, "an append at 120000",
                    record.of(.append).last?.summary ?? "no append")
            }),
        .upload(
            "4.4/conflict-bare", .should, "4.4.2",
            "After 409 without an offset the client retrieves the offset and continues the upload.",
            covers: "CLI-32",
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if stage.step == 1, request.kind == .append, request.start >= 100_000 {
                    stage.step = 2
                    reaction.refuse(409)
                }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.4/conflict-for-ever", .should, "4.4.2", "After repeated 409 the client stops.", covers: "CLI-32",
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if request.kind == .append { reaction.refuse(409, [request.profile.completeness(false)]) }
            },
            verify: { try $0.expectTruthfulStatus() }),
        .upload(
            "4.3/error-for-ever", .should, "4.3", "After repeated 503 the client stops.", covers: "CLI-12",
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 100_000)
                if request.kind == .retrieval { reaction.refuse(503) }
            },
            verify: { record in
                try record.expectTruthfulStatus()
                if record.of(.retrieval).isEmpty { throw record.skip("the client does not retrieve the offset") }
            }),
    ]

    private static let refusals: [Scenario] =
        [400, 403, 422].map { status in
            .upload(
                "4.2/refused-\(status)", .should, "4.2.1", "A creation that is refused with \(status) is not repeated.",
                covers: "CLI-13",
                script: { request, _, reaction in
                    if request.kind == .creation { reaction.refuse(status, [request.profile.completeness(false)]) }
                    if request.kind == .plain { reaction.refuse(status) }
                },
                verify: { record in
                    try record.expectFailure("the creation was refused")
                    let again = record.of(.creation, .plain).dropFirst()
                    try record.expectNone(Array(again), "no creation after \(status)")
                })
        } + [
            .upload(
                "4.2/too-many-requests", .should, "RFC 6585 4",
                "After 429 the client waits for the time of Retry-After.",
                covers: "CLI-13",
                script: { request, _, reaction in
                    if request.isFirst(.creation) { reaction.refuse(429, [("Retry-After", "1")]) }
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    try record.expectPause(after: record.requests.first { $0.status == 429 }, milliseconds: 900)
                }),
            .upload(
                "4.1.2/error-complete", .should, "4.1.2",
                "A 5xx response with ?1 is the target's response: the upload is not resumed.",
                covers: "CLI-11", script: { answerAsTarget(500, $0, $1, &$2) }, verify: { try verifyFinal($0) }),
            .upload(
                "4.1.2/refusal-complete", .should, "4.1.2",
                "A 4xx response with ?1 during the content is the target's response: the upload is not resumed.",
                covers: "CLI-11",
                script: { answerAsTarget(422, $0, $1, &$2) }, verify: { try verifyFinal($0) }),
            .upload(
                "9112/early-answer", .should, "RFC 9112 9.5",
                "After a final response the client stops sending the content.",
                covers: "CLI-36", size: 8 << 20,
                script: { request, _, reaction in
                    guard request.hasContent else { return }
                    reaction.readLimit = 65_536
                    reaction.shouldStore = false
                    reaction.isCompleting = false
                    let complete = request.profile.completeness(true)
                    reaction.ending = .answer(.init(status: 422, fields: [complete]))
                },
                verify: { record in
                    try record.expectFailure("the target rejected the content")
                    try record.expect(
                        record.transferred < record.size, "less than the complete content", "all \(record.size) bytes")
                }),
            .upload(
                "10/mismatch", .should, "10", "If the server reports a digest mismatch, the upload fails.",
                covers: "CLI-30",
                script: { request, stage, reaction in
                    if ["Repr-Digest", "Content-Digest", "Want-Repr-Digest"].contains(where: {
                        request.fields.contains($0)
                    }) {
                        stage.step = 1
                    }
                    guard reaction.isCompleting else { return }
                    let type = "https://iana.org/assignments/http-problem-types#digest-mismatch"
                    reaction.isCompleting = false
                    reaction.ending = .answer(
                        .init(
                            status: 400,
                            fields: [
                                request.profile.completeness(false), ("Content-Type", "application/problem+json"),
                            ],
                            content: Array("{\"type\":\"\(type)\",\"status\":400}".utf8)))
                },
                verify: { record in
                    if record.stage.step == 0 { throw record.skip("the client neither sends nor requests a digest") }
                    try record.expectFailure("the server received different bytes")
                }),
        ]

    @Sendable private static func answerAsTarget(
        _ status: Int, _ request: ScriptedRequest, _ stage: Stage, _ reaction: inout Reaction
    ) {
        guard request.reaches(50_000) else { return }
        reaction.readLimit = 50_000 - request.start
        reaction.isCompleting = false
        reaction.ending = .answer(.init(status: status, fields: [request.profile.completeness(true)]))
    }

    @Sendable private static func verifyFinal(_ record: ScenarioRecord) throws {
        try record.expectFailure("the target rejected the content")
        let answered = record.requests.first { ($0.status ?? 0) >= 400 && $0.hasContent }
        guard let answered else { throw Unmet("content up to offset 50000", seen: "none") }
        try record.expectNone(record.after(answered, .append, .creation, .plain), "no content after the final response")
    }

    private static let gone: [Scenario] =
        [404, 410].map { status in
            .upload(
                "4.3/gone-\(status)", .should, "4.3.2",
                "After \(status) to a retrieval the upload is not accessed again.",
                covers: "CLI-13",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval {
                        if let number = request.upload { stage.uploads.uploads[number - 1].isGone = true }
                        reaction.refuse(status)
                    }
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    guard let gone = record.of(.retrieval).first(where: { $0.status == status }) else { return }
                    let later = record.after(gone, .append, .retrieval).filter {
                        $0.upload == gone.upload && $0.run == gone.run
                    }
                    try record.expectNone(later, "no more requests to an upload that is gone")
                })
        } + [
            .upload(
                "4.4/gone", .should, "4.4.2", "After 404 to an append the client sends no more appends to the upload.",
                covers: "CLI-13",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .append, request.start > 0 { reaction.refuse(404) }
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    guard let gone = record.of(.append).first(where: { $0.status == 404 }) else { return }
                    let later = record.after(gone, .append).filter { $0.upload == gone.upload && $0.run == gone.run }
                    try record.expectNone(later, "no more appends to an upload that is gone")
                })
        ]

    private static let limits: [Scenario] = [
        .upload(
            "4.1.4/413-limits", .should, "4.1.4",
            "After 413 with limits the client sends the remainder in parts within these limits.",
            covers: "CLI-14 CLI-16",
            script: { request, stage, reaction in
                stage.uploads.limits = "max-append-size=70000"
                reaction.setAnnouncementField("Upload-Limit", nil)
                refuseAbove(70_000, request, stage, &reaction, reports: true)
            },
            verify: { record in
                try record.expectSuccess()
                try verifyParts(record, above: 70_000)
            }),
        .upload(
            "4.1.4/413-discovery", .should, "4.1.4", "After 413 without limits the client requests them with OPTIONS.",
            covers: "CLI-15 CLI-14",
            script: { request, stage, reaction in
                stage.uploads.limits = "max-append-size=70000"
                if request.kind != .discovery { reaction.set("Upload-Limit", nil) }
                reaction.setAnnouncementField("Upload-Limit", nil)
                refuseAbove(70_000, request, stage, &reaction, reports: false)
            },
            verify: { record in
                try record.expectTruthfulStatus()
                try record.expect(
                    record.of(.discovery).count > 0 || !record.requests.contains { $0.status == 413 },
                    "OPTIONS after 413", "none")
                try record.expectSuccess()
            }),
        .upload(
            "4.1.4/413-unknown", .should, "4.1.4", "After 413 the client does not send content of the same size again.",
            covers: "CLI-14",
            script: { request, stage, reaction in
                if request.kind == .discovery { return reaction.refuse(405) }
                reaction.set("Upload-Limit", nil)
                reaction.setAnnouncementField("Upload-Limit", nil)
                refuseAbove(70_000, request, stage, &reaction, reports: false)
            },
            verify: { record in
                try record.expectTruthfulStatus()
                var smallest = Int64.max
                for request in record.of(.creation, .append) where request.hasContent {
                    let size = request.contentLength ?? .max - 1
                    try record.expect(
                        size < smallest, "fewer than the \(smallest) bytes that were refused", request.summary)
                    if request.status == 413 { smallest = min(smallest, size) }
                }
            }),
        .upload(
            "4.1.4/append-sizes", .must, "4.1.4", "Appends comply with the limits that the server reported.",
            covers: "CLI-16",
            script: { request, stage, reaction in
                stage.cut(request, &reaction, at: 50_000)
                if stage.step == 1 {
                    stage.uploads.limits = "max-append-size=60000, min-append-size=20000"
                    if request.kind == .retrieval { reaction.set("Upload-Limit", stage.uploads.limits) }
                }
            },
            verify: { record in
                try record.expectTruthfulStatus()
                guard let reported = record.of(.retrieval).first(where: { $0.status == 204 }) else { return }
                for append in record.after(reported, .append) where append.upload == reported.upload {
                    let size = append.contentLength ?? append.received
                    try record.expect(size <= 60_000, "at most 60000 bytes", append.summary)
                    if append.isComplete == false, append.isContentComplete {
                        try record.expect(size >= 20_000, "at least 20000 bytes", append.summary)
                    }
                }
            }),
        .upload(
            "4.1.4/max-size", .should, "4.1.4", "An upload larger than max-size is stopped and canceled.",
            covers: "CLI-17", size: 8 << 20,
            script: { request, stage, reaction in
                stage.uploads.limits = "max-size=1000000"
                reaction.setAnnouncementField("Upload-Limit", stage.uploads.limits)
                if request.kind == .creation, request.hasContent {
                    reaction.readLimit = 1_000_000
                    reaction.isCompleting = false
                    reaction.ending = .stall
                } else if request.kind == .append {
                    reaction.refuse(413, [request.profile.completeness(false), ("Upload-Limit", stage.uploads.limits)])
                } else {
                    reaction.set("Upload-Limit", reaction.answer.map { _ in "max-size=1000000" })
                }
            },
            verify: { record in
                try record.expectFailure("the file is larger than max-size")
                // A client that requests the limits before a creation has nothing to cancel.
                let isCanceled = record.of(.creation).isEmpty || !record.of(.cancellation).isEmpty
                try record.expect(isCanceled, "DELETE of the upload", "none")
            }),
        .upload(
            "4.1.4/unknown-keys", .must, "4.1.4", "Unknown keys of Upload-Limit are ignored.", covers: "STF-14",
            script: { reportOnRetrieval("max-append-size=60000, foo=(1 2), bar", $0, &$1, &$2) },
            verify: { record in
                try record.expectTruthfulStatus()
                try verifyReported(record, maximum: 60_000)
            }),
        .upload(
            "4.1.4/void", .must, "4.1.4", "A limit of a type other than Integer makes the entire field invalid.",
            covers: "STF-15",
            script: { request, stage, reaction in
                reaction.setAnnouncementField("Upload-Limit", "max-size=10, max-age=1.5")
                if request.kind != .creation { reaction.set("Upload-Limit", "max-size=10, max-age=1.5") }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "9651/last-key", .must, "RFC 9651 3.2", "If a key is repeated, its last value is used.",
            covers: "STF-16",
            script: { _, _, reaction in reaction.setAnnouncementField("Upload-Limit", "max-size=1, max-size=900000000")
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.1.4/max-age", .should, "4.1.4", "An upload is not accessed after its max-age has passed.",
            covers: "CLI-18",
            script: { request, stage, reaction in
                stage.uploads.limits = "max-age=1"
                reaction.setAnnouncementField("Upload-Limit", "max-age=1")
                if stage.uploads.uploads.count == 1 { stage.cut(request, &reaction, at: 100_000) }
                if request.isFirst(.retrieval) {
                    reaction.refuse(503, [("Retry-After", "2"), ("Upload-Limit", "max-age=1")])
                }
            },
            verify: { record in
                try record.expectTruthfulStatus()
                guard let retrieval = record.requests.first(where: { $0.isFirst(.retrieval) }) else { return }
                let late = record.after(retrieval).filter {
                    $0.upload == retrieval.upload && $0.kind != .creation
                        && $0.arrivedAt - (retrieval.answeredAt ?? 0) > 1_500_000_000
                }
                try record.expectNone(late, "no request to an expired upload")
            }),
    ]

    /// Refuses content of more than `maximum` bytes with 413.
    private static func refuseAbove(
        _ maximum: Int64, _ request: ScriptedRequest, _ stage: Stage, _ reaction: inout Reaction, reports: Bool
    ) {
        guard request.hasContent, [.creation, .append].contains(request.kind), request.contentLength ?? .max > maximum
        else { return }
        let limits = reports ? [("Upload-Limit", "max-append-size=\(maximum)")] : []
        reaction.refuse(413, [request.profile.completeness(false)] + limits)
    }

    @Sendable private static func reportOnRetrieval(
        _ limits: String, _ request: ScriptedRequest, _ stage: inout Stage, _ reaction: inout Reaction
    ) {
        stage.cut(request, &reaction, at: 50_000)
        if request.kind == .retrieval { reaction.set("Upload-Limit", limits) }
    }

    private static func verifyReported(_ record: ScenarioRecord, maximum: Int64) throws {
        guard let reported = record.of(.retrieval).first(where: { $0.status == 204 }) else { return }
        for append in record.after(reported, .append) where append.upload == reported.upload {
            try record.expect(
                (append.contentLength ?? append.received) <= maximum, "at most \(maximum) bytes", append.summary)
        }
    }

    private static func verifyParts(_ record: ScenarioRecord, above maximum: Int64) throws {
        guard let refused = record.requests.first(where: { $0.status == 413 }) else { return }
        let large = record.after(refused, .creation, .append).filter { ($0.contentLength ?? .max) > maximum }
        try record.expectNone(large.filter(\.hasContent), "no content of more than \(maximum) bytes after 413")
    }
}
