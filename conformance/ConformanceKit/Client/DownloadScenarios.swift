/// Downloads that are cut, and servers that answer something else than what was asked for.
enum DownloadScenarios {
    static func all(seed: UInt64) -> [Scenario] {
        var random = SplitMix(state: seed &+ 1)
        let points = (0..<3).map { _ in Int.random(in: 1..<Int(Scenario.usualSize), using: &random) }.sorted()
        return [
            .download("14/whole", .must, "RFC 9110 9.3.1", "A file arrives whole.") { try $0.expectSuccess() },
            .download("14/empty", .must, "RFC 9110 9.3.1", "An empty file arrives as one.", size: 0) {
                try $0.expectSuccess()
            },
            .download(
                "14/chunked", .must, "RFC 9112 7.1", "A file of unknown length arrives completely.",
                script: { _, _, reaction in reaction.answer?.isChunked = true },
                verify: { try $0.expectSuccess() }),
            .download(
                "14/cut", .should, "RFC 9112 8", "Content that ends before its length does is asked for from there on.",
                covers: "RNG-32",
                script: { cut($0, &$1, &$2, at: [100_000]) }, verify: verifyResumed),
            .download(
                "14/cut-random", .should, "RFC 9112 8", "A download survives cuts at random places.",
                covers: "RNG-32",
                script: { cut($0, &$1, &$2, at: points) }, verify: verifyResumed),
            .download(
                "14/cut-chunked", .must, "RFC 9112 8", "Chunked content without its last chunk is not a whole file.",
                covers: "RNG-32",
                script: { request, stage, reaction in
                    guard reaction.answer?.status == 200 else { return }
                    reaction.answer?.isChunked = true
                    cut(request, &stage, &reaction, at: [100_000])
                }, verify: { try $0.expectHonesty() }),
            .download(
                "14/stall", .should, "RFC 9112 8",
                "A server that falls silent amid the content is given up and asked again.",
                script: { request, stage, reaction in
                    // Its head says more than what comes.
                    guard stage.step == 0, let answer = reaction.answer, answer.status == 200 else { return }
                    stage.step = 1
                    reaction.interim = [.init(status: 102)]
                    reaction.ending = .stall
                }, verify: { try $0.expectSuccess() }),
            .download(
                "14/no-response", .must, "RFC 9112 8",
                "A connection that is closed without a response is no success.",
                script: { _, stage, reaction in
                    guard stage.step == 0 else { return }
                    stage.step = 1
                    reaction.ending = .end
                }, verify: { try $0.expectHonesty() }),
            .download(
                "14/unavailable", .should, "RFC 9110 15.6.4",
                "After 503 with Retry-After the download is resumed when that time has passed.",
                script: { request, stage, reaction in
                    if stage.step == 1 {
                        stage.step = 2
                        return reaction.refuse(503, [("Retry-After", "1")])
                    }
                    cut(request, &stage, &reaction, at: [100_000])
                },
                verify: { record in
                    try record.expectSuccess()
                    try record.expectPause(after: record.requests.first { $0.status == 503 }, milliseconds: 900)
                }),
            .download(
                "14/error-for-ever", .should, "RFC 9110 9.2.2", "After repeated 503 the client stops.",
                covers: "CLI-32",
                script: { request, stage, reaction in
                    if stage.step == 1 { return reaction.refuse(503) }
                    cut(request, &stage, &reaction, at: [100_000])
                }, verify: { try $0.expectFailure("every request is refused") }),
            .download(
                "14/gone", .must, "RFC 9110 15.5.5", "A file that is gone amid the download is no success.",
                script: { request, stage, reaction in
                    if stage.step == 1 { return reaction.refuse(404) }
                    cut(request, &stage, &reaction, at: [100_000])
                },
                verify: { record in
                    try record.expectFailure("the file is gone")
                }),
        ] + changes + misfits + others
    }

    private static let changes: [Scenario] = [
        changed(
            "changed", "A file that changed amid the download is not mixed with what had arrived.",
            tags: ["\"a\"", "\"b\""]
        ) { _, _ in },
        changed(
            "changed-part", "A part with another entity tag is not combined with what had arrived.",
            tags: ["\"a\"", "\"b\""]
        ) { request, reaction in
            sendPart(request, &reaction)
        },
        changed(
            "weak-tag", "Parts are not combined under a weak entity tag.", tags: ["W/\"a\"", "W/\"a\""]
        ) { request, reaction in
            sendPart(request, &reaction)
        },
        .download(
            "14/date", .should, "RFC 9110 8.8.2.2",
            "A file with no other validator than a date that is old enough is resumed.", covers: "RNG-32",
            script: { request, stage, reaction in
                date(request, &stage, &reaction)
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: verifyResumed),
        .download(
            "14/date-changed", .must, "RFC 9110 15.3.7.3", "Parts of files with other dates are not combined.",
            covers: "RNG-27",
            script: { request, stage, reaction in
                if stage.step > 0 { stage.downloads.edition = 1 }
                date(request, &stage, &reaction)
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: { try $0.expectHonesty() }),
        changed("no-validator", "Parts are not combined without a validator.", tags: [nil, nil]) { request, reaction in
            sendPart(request, &reaction)
        },
    ]

    /// Another representation of the same size, from the second request on.
    private static func changed(
        _ id: String, _ requirement: String, tags: [String?],
        _ change: @escaping @Sendable (ScriptedRequest, inout Reaction) -> Void
    ) -> Scenario {
        .download(
            "14/\(id)", .must, "RFC 9110 15.3.7.3", requirement, covers: "RNG-27",
            script: { request, stage, reaction in
                if stage.step == 0 {
                    stage.downloads.tags = tags
                    reaction = stage.downloads.reaction(to: request)
                } else {
                    stage.downloads.edition = 1
                    reaction = stage.downloads.reaction(to: request)
                    change(request, &reaction)
                }
                cut(request, &stage, &reaction, at: [100_000])
            },
            verify: { record in
                try record.expectHonesty()
                try record.expect(!record.isMixture, "one representation, or none", "a mixture of two")
            })
    }

    /// Dates in place of entity tags, a day before the response; the other representation is an hour younger.
    @Sendable private static func date(_ request: ScriptedRequest, _ stage: inout Stage, _ reaction: inout Reaction) {
        stage.downloads.tags = [nil, nil]
        stage.downloads.dates = ["Fri, 02 Jan 2026 10:00:00 GMT", "Fri, 02 Jan 2026 11:00:00 GMT"]
        reaction = stage.downloads.reaction(to: request)
        reaction.set("Date", "Sat, 03 Jan 2026 10:00:00 GMT")
    }

    /// A part of the second representation, whatever the conditions of the request say.
    @Sendable private static func sendPart(_ request: ScriptedRequest, _ reaction: inout Reaction) {
        guard let start = DownloadModel.start(of: request), start < Scenario.usualSize, var answer = reaction.answer
        else { return }
        let content = DownloadModel.content(1, Scenario.usualSize)
        answer.status = 206
        answer.fields.removeAll { $0.0 == "Content-Range" }
        answer.fields.append(("Content-Range", "bytes \(start)-\(content.count - 1)/\(content.count)"))
        answer.content = Array(content[Int(start)...])
        reaction.answer = answer
    }

    private static let misfits: [Scenario] = [
        .download(
            "14/range-ignored", .must, "RFC 9110 14.2", "200 to a request with Range is not appended.",
            covers: "RNG-29", script: { ignoreRange($0, &$1, &$2) }, verify: { try $0.expectHonesty() }),
        .download(
            "14/range-ignored-whole", .should, "RFC 9110 14.2",
            "200 to a request with Range begins at zero, and the file arrives.", covers: "RNG-29",
            script: { ignoreRange($0, &$1, &$2) }, verify: { try $0.expectSuccess() }),
        misfit("shifted-down", "A part that begins earlier than asked for is not appended.") { start, size in
            (start - 1000, size, size)
        },
        misfit("shifted-up", "A part that begins later than asked for is not appended.") { start, size in
            (start + 1000, size, size)
        },
        misfit("other-size", "A part of a representation of another size is not appended.", edition: 1) {
            start, size in
            (start, size, size + 5000)
        },
        misfit("beginning", "The beginning is not appended if the remainder was asked for.") { _, size in
            (0, size / 3, size)
        },
        misfit("short-part", "A part that ends earlier than asked for does not complete the file.") { start, size in
            (start, (start + size) / 2, size)
        },
        .download(
            "14/short-content", .must, "RFC 9110 15.3.7",
            "A part with less content than Content-Range says does not complete the file.", covers: "RNG-28",
            script: { request, stage, reaction in
                if stage.step == 1, reaction.answer?.status == 206, let content = reaction.answer?.content {
                    stage.step = 2
                    reaction.answer?.content = Array(content.prefix(content.count / 2))
                }
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: { try $0.expectHonesty() }),
        .download(
            "14/part-without-range", .must, "RFC 9110 15.3.7", "A part without Content-Range is not appended.",
            covers: "RNG-28",
            script: { request, stage, reaction in
                if stage.step == 1, request.fields.contains("Range") {
                    stage.step = 2
                    reaction.set("Content-Range", nil)
                    // Its position is unknown: it is the beginning.
                    let count = reaction.answer?.content.count ?? 0
                    reaction.answer?.content = Array(DownloadModel.content(0, stage.size).prefix(count))
                }
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: { try $0.expectHonesty() }),
        .download(
            "14/unasked-part", .must, "RFC 9110 15.3.7",
            "A part that was not requested is not mistaken for the complete file.",
            covers: "RNG-28",
            script: { request, stage, reaction in
                guard !request.fields.contains("Range"), request.method == "GET" else { return }
                reaction.answer?.status = 206
                reaction.set("Content-Range", "bytes 0-99999/\(stage.size)")
                reaction.answer?.content = Array(DownloadModel.content(0, stage.size).prefix(100_000))
            }, verify: { try $0.expectHonesty() }),
        .download(
            "14/416-complete", .should, "RFC 9110 15.5.17", "416 with the size that is there means that all is there.",
            covers: "RNG-30",
            script: { request, stage, reaction in
                // All bytes and no end: the client cannot know that nothing is missing.
                guard stage.step == 0, reaction.answer?.status == 200 else { return }
                stage.step = 1
                reaction.answer?.isChunked = true
                reaction.answer?.cutAt = Int(stage.size)
            }, verify: { try $0.expectSuccess() }),
        .download(
            "14/416-shorter", .must, "RFC 9110 15.5.17", "416 with another size does not make a file whole.",
            covers: "RNG-30",
            script: { request, stage, reaction in
                if stage.step == 1, request.fields.contains("Range") {
                    return reaction.refuse(416, [("Content-Range", "bytes */90000"), ("ETag", "\"second\"")])
                }
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: { try $0.expectHonesty() }),
    ]

    @Sendable private static func ignoreRange(
        _ request: ScriptedRequest, _ stage: inout Stage, _ reaction: inout Reaction
    ) {
        if request.fields.contains("Range") {
            reaction.answer?.status = 200
            reaction.answer?.content = DownloadModel.content(stage.downloads.edition, stage.size)
            reaction.set("Content-Range", nil)
        }
        cut(request, &stage, &reaction, at: [100_000])
    }

    /// A 206 to the first request with Range that does not fit; later ones are answered rightly.
    private static func misfit(
        _ id: String, _ requirement: String, edition: Int = 0,
        _ place: @escaping @Sendable (Int64, Int64) -> (Int64, Int64, Int64)
    ) -> Scenario {
        .download(
            "14/\(id)", .must, "RFC 9110 15.3.7", requirement, covers: "RNG-28",
            script: { request, stage, reaction in
                if stage.step == 1, let start = DownloadModel.start(of: request) {
                    let content = DownloadModel.content(edition, stage.size)
                    stage.step = 2
                    let (first, end, size) = place(start, stage.size)
                    reaction.answer?.status = 206
                    reaction.answer?.content = Array(content[Int(first)..<Int(end)])
                    reaction.set("Content-Range", "bytes \(first)-\(end - 1)/\(size)")
                }
                cut(request, &stage, &reaction, at: [100_000])
            },
            verify: { record in
                try record.expectHonesty()
            })
    }

    private static let others: [Scenario] = [
        .download(
            "14/redirect-elsewhere", .must, "RFC 9110 15.4",
            "Credentials of a download do not follow a redirection to another origin.", covers: "RED-03",
            script: { request, stage, reaction in
                if request.origin == 0, stage.origins.count > 1 {
                    reaction.refuse(307, [("Location", stage.origins[1] + request.target)])
                }
            },
            verify: { record in
                try record.expectHonesty()
                guard record.requests.first?.carriesCredentials == true else {
                    throw record.skip("the command sends no credentials (Authorization)")
                }
                try record.expectNone(
                    record.requests.filter { $0.origin != 0 && $0.carriesCredentials },
                    "no credentials at another origin")
            }),
        .download(
            "14/restart", .should, "RFC 9110 14", "After the command was killed, the next run resumes the transfer.",
            covers: "RNG-32", size: 2 << 20,
            script: { request, stage, reaction in
                guard stage.step == 0, reaction.answer?.status == 200 else { return }
                stage.step = 1
                reaction.answer?.cutAt = 3 << 19
                reaction.answer?.kills = true
            },
            verify: { record in
                try record.expectSuccess()
                let resumed = record.requests.contains { $0.run > 1 && (DownloadModel.start(of: $0) ?? 0) > 0 }
                try record.expect(resumed, "a request with Range in the second run", "the file from its beginning")
            }),
    ]

    /// Ends the connection, in order, at these places of the representation, once each.
    private static func cut(
        _ request: ScriptedRequest, _ stage: inout Stage, _ reaction: inout Reaction, at offsets: [Int]
    ) {
        guard stage.step < offsets.count, request.method == "GET", var answer = reaction.answer,
            answer.status == 200 || answer.status == 206
        else { return }
        let start = answer.status == 206 ? Int(DownloadModel.start(of: request) ?? 0) : 0
        guard start < offsets[stage.step] else { return }
        answer.cutAt = offsets[stage.step] - start
        stage.step += 1
        reaction.answer = answer
    }

    @Sendable private static func verifyResumed(_ record: ScenarioRecord) throws {
        try record.expectSuccess()
        let resumed = record.requests.contains { ($0.status == 206) && (DownloadModel.start(of: $0) ?? 0) > 0 }
        try record.expect(resumed, "a request with Range for the remainder", "the file from its beginning")
        try record.expectThrift(0)
    }
}
