/// Scenarios of downloads: interruptions, changed files, and responses that do not match the request.
enum DownloadScenarios {
    static func all(seed: UInt64) -> [Scenario] {
        var random = SplitMix(state: seed &+ 1)
        let points = (0..<3).map { _ in Int.random(in: 1..<Int(Scenario.usualSize), using: &random) }.sorted()
        return [
            .download("14/complete", .must, "RFC 9110 9.3.1", "A file is downloaded completely.") {
                try $0.expectSuccess()
            },
            .download("14/empty", .must, "RFC 9110 9.3.1", "An empty file is downloaded as an empty file.", size: 0) {
                try $0.expectSuccess()
            },
            .download(
                "14/chunked", .must, "RFC 9112 7.1", "A file of unknown length is downloaded completely.",
                script: { _, _, reaction in reaction.answer?.isChunked = true },
                verify: { try $0.expectSuccess() }),
            .download(
                "14/cut", .should, "RFC 9112 8",
                "A download whose content is shorter than its length is resumed at the end of the content.",
                covers: "RNG-32",
                script: { cut($0, &$1, &$2, at: [100_000]) }, verify: verifyResumed),
            .download(
                "14/cut-random", .should, "RFC 9112 8", "A download is resumed after cuts at random positions.",
                covers: "RNG-32",
                script: { cut($0, &$1, &$2, at: points) }, verify: verifyResumed),
            .download(
                "14/cut-chunked", .must, "RFC 9112 8", "Chunked content without its last chunk is not a complete file.",
                covers: "RNG-32",
                script: { request, stage, reaction in
                    guard reaction.answer?.status == 200 else { return }
                    reaction.answer?.isChunked = true
                    cut(request, &stage, &reaction, at: [100_000])
                }, verify: { try $0.expectTruthfulStatus() }),
            .download(
                "14/stall", .should, "RFC 9112 8",
                "After a time without bytes the client closes the connection and sends a new request.",
                script: { request, stage, reaction in
                    // The server sends an interim response and nothing more.
                    guard stage.step == 0, let answer = reaction.answer, answer.status == 200 else { return }
                    stage.step = 1
                    reaction.interim = [.init(status: 102)]
                    reaction.ending = .stall
                }, verify: { try $0.expectSuccess() }),
            .download(
                "14/no-response", .must, "RFC 9112 8",
                "A connection that is closed without a response is not a success.",
                script: { _, stage, reaction in
                    guard stage.step == 0 else { return }
                    stage.step = 1
                    reaction.ending = .end
                }, verify: { try $0.expectTruthfulStatus() }),
            .download(
                "14/unavailable", .should, "RFC 9110 15.6.4",
                "After 503 the download is resumed when the time of Retry-After has passed.",
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
                "14/gone", .must, "RFC 9110 15.5.5", "A download of a file that no longer exists fails.",
                script: { request, stage, reaction in
                    if stage.step == 1 { return reaction.refuse(404) }
                    cut(request, &stage, &reaction, at: [100_000])
                },
                verify: { record in
                    try record.expectFailure("the file is gone")
                }),
        ] + changes + mismatchedResponses + others
    }

    private static let changes: [Scenario] = [
        changed(
            "changed", "If the file changes during the download, bytes of both versions are not combined.",
            tags: ["\"a\"", "\"b\""]
        ) { _, _ in },
        changed(
            "changed-part", "A part with a different entity tag is not combined with the bytes that had arrived.",
            tags: ["\"a\"", "\"b\""]
        ) { request, reaction in
            sendPart(request, &reaction)
        },
        changed(
            "weak-tag", "Parts are not combined if their entity tag is weak.", tags: ["W/\"a\"", "W/\"a\""]
        ) { request, reaction in
            sendPart(request, &reaction)
        },
        .download(
            "14/date", .should, "RFC 9110 8.8.2.2",
            "A download whose only validator is a date is resumed if the date is old enough.", covers: "RNG-32",
            script: { request, stage, reaction in
                date(request, &stage, &reaction)
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: verifyResumed),
        .download(
            "14/date-changed", .must, "RFC 9110 15.3.7.3", "Parts with different dates are not combined.",
            covers: "RNG-27",
            script: { request, stage, reaction in
                if stage.step > 0 { stage.downloads.edition = 1 }
                date(request, &stage, &reaction)
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: { try $0.expectTruthfulStatus() }),
        changed("no-validator", "Parts are not combined if they have no validator.", tags: [nil, nil]) {
            request, reaction in
            sendPart(request, &reaction)
        },
    ]

    /// A scenario in which requests after the first get another representation of the same size.
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
                try record.expectTruthfulStatus()
                try record.expect(!record.isMixture, "one representation, or none", "bytes of both representations")
            })
    }

    /// Replaces entity tags by dates that are a day before the response. The second representation is an hour newer
    /// than the first.
    @Sendable private static func date(_ request: ScriptedRequest, _ stage: inout Stage, _ reaction: inout Reaction) {
        stage.downloads.tags = [nil, nil]
        stage.downloads.dates = ["Fri, 02 Jan 2026 10:00:00 GMT", "Fri, 02 Jan 2026 11:00:00 GMT"]
        reaction = stage.downloads.reaction(to: request)
        reaction.set("Date", "Sat, 03 Jan 2026 10:00:00 GMT")
    }

    /// Answers with a part of the second representation, regardless of the conditions of the request.
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

    private static let mismatchedResponses: [Scenario] = [
        .download(
            "14/range-ignored", .must, "RFC 9110 14.2", "The content of 200 to a request with Range is not appended.",
            covers: "RNG-29", script: { ignoreRange($0, &$1, &$2) }, verify: { try $0.expectTruthfulStatus() }),
        .download(
            "14/range-ignored-restart", .should, "RFC 9110 14.2",
            "After 200 to a request with Range the client stores the content from the beginning, and succeeds.",
            covers: "RNG-29",
            script: { ignoreRange($0, &$1, &$2) }, verify: { try $0.expectSuccess() }),
        mismatchedPart("shifted-down", "A part that begins before the requested position is not appended.") {
            start, size in
            (start - 1000, size, size)
        },
        mismatchedPart("shifted-up", "A part that begins after the requested position is not appended.") {
            start, size in
            (start + 1000, size, size)
        },
        mismatchedPart("other-size", "A part of a representation of a different size is not appended.", edition: 1) {
            start, size in
            (start, size, size + 5000)
        },
        mismatchedPart("beginning", "A part from the beginning is not appended if the remainder was requested.") {
            _, size in
            (0, size / 3, size)
        },
        mismatchedPart("short-part", "A part that ends before the requested position does not complete the file.") {
            start, size in
            (start, (start + size) / 2, size)
        },
        .download(
            "14/short-content", .must, "RFC 9110 15.3.7",
            "A part with less content than Content-Range states does not complete the file.", covers: "RNG-28",
            script: { request, stage, reaction in
                if stage.step == 1, reaction.answer?.status == 206, let content = reaction.answer?.content {
                    stage.step = 2
                    reaction.answer?.content = Array(content.prefix(content.count / 2))
                }
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: { try $0.expectTruthfulStatus() }),
        .download(
            "14/part-without-range", .must, "RFC 9110 15.3.7", "A part without Content-Range is not appended.",
            covers: "RNG-28",
            script: { request, stage, reaction in
                if stage.step == 1, request.fields.contains("Range") {
                    stage.step = 2
                    reaction.set("Content-Range", nil)
                    // The content is the beginning of the file. The client has no information about its position.
                    let count = reaction.answer?.content.count ?? 0
                    reaction.answer?.content = Array(DownloadModel.content(0, stage.size).prefix(count))
                }
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: { try $0.expectTruthfulStatus() }),
        .download(
            "14/unasked-part", .must, "RFC 9110 15.3.7",
            "A part that was not requested does not count as the complete file.",
            covers: "RNG-28",
            script: { request, stage, reaction in
                guard !request.fields.contains("Range"), request.method == "GET" else { return }
                reaction.answer?.status = 206
                reaction.set("Content-Range", "bytes 0-99999/\(stage.size)")
                reaction.answer?.content = Array(DownloadModel.content(0, stage.size).prefix(100_000))
            }, verify: { try $0.expectTruthfulStatus() }),
        .download(
            "14/416-complete", .should, "RFC 9110 15.5.17",
            "If 416 has a size that equals the number of bytes that have arrived, the file is complete.",
            covers: "RNG-30",
            script: { request, stage, reaction in
                // The server sends all bytes, but not the last chunk, so the file does not seem complete to the client.
                guard stage.step == 0, reaction.answer?.status == 200 else { return }
                stage.step = 1
                reaction.answer?.isChunked = true
                reaction.answer?.cutAt = Int(stage.size)
            }, verify: { try $0.expectSuccess() }),
        .download(
            "14/416-shorter", .must, "RFC 9110 15.5.17", "416 with a different size does not complete a file.",
            covers: "RNG-30",
            script: { request, stage, reaction in
                if stage.step == 1, request.fields.contains("Range") {
                    return reaction.refuse(416, [("Content-Range", "bytes */90000"), ("ETag", "\"second\"")])
                }
                cut(request, &stage, &reaction, at: [100_000])
            }, verify: { try $0.expectTruthfulStatus() }),
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

    /// A scenario in which the first request with Range gets a 206 that does not match the request. Later requests get
    /// correct responses.
    /// - Parameter part: returns the first position and the end of the part, and the size that Content-Range states.
    ///   Its arguments are the requested position and the size of the file.
    private static func mismatchedPart(
        _ id: String, _ requirement: String, edition: Int = 0,
        _ part: @escaping @Sendable (Int64, Int64) -> (Int64, Int64, Int64)
    ) -> Scenario {
        .download(
            "14/\(id)", .must, "RFC 9110 15.3.7", requirement, covers: "RNG-28",
            script: { request, stage, reaction in
                if stage.step == 1, let start = DownloadModel.start(of: request) {
                    let content = DownloadModel.content(edition, stage.size)
                    stage.step = 2
                    let (first, end, size) = part(start, stage.size)
                    reaction.answer?.status = 206
                    reaction.answer?.content = Array(content[Int(first)..<Int(end)])
                    reaction.set("Content-Range", "bytes \(first)-\(end - 1)/\(size)")
                }
                cut(request, &stage, &reaction, at: [100_000])
            },
            verify: { record in
                try record.expectTruthfulStatus()
            })
    }

    private static let others: [Scenario] = [
        .download(
            "14/redirect-elsewhere", .must, "RFC 9110 15.4",
            "After a redirection of a download the client sends no credentials to another origin.", covers: "RED-03",
            script: { request, stage, reaction in
                if request.origin == 0, stage.origins.count > 1 {
                    reaction.refuse(307, [("Location", stage.origins[1] + request.target)])
                }
            },
            verify: { record in
                try record.expectTruthfulStatus()
                guard record.requests.first?.hasCredentials == true else {
                    throw record.skip("the command sends no credentials (Authorization)")
                }
                try record.expectNone(
                    record.requests.filter { $0.origin != 0 && $0.hasCredentials },
                    "no credentials at another origin")
            }),
        .download(
            "14/restart", .should, "RFC 9110 14", "After the command was killed, its next run resumes the transfer.",
            covers: "RNG-32", size: 2 << 20,
            script: { request, stage, reaction in
                guard stage.step == 0, reaction.answer?.status == 200 else { return }
                stage.step = 1
                reaction.answer?.cutAt = 3 << 19
                reaction.answer?.shouldKill = true
            },
            verify: { record in
                try record.expectSuccess()
                let resumed = record.requests.contains { $0.run > 1 && (DownloadModel.start(of: $0) ?? 0) > 0 }
                try record.expect(resumed, "a request with Range in the second run", "the file from its beginning")
            }),
    ]

    /// Closes the connection at each of these offsets of the representation, once per offset.
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
        try record.expectRepeatedBytes(atMost: 0)
    }
}
