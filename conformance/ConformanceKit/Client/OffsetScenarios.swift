/// Scenarios of the offset, length and completeness that a server reports after an interruption.
enum OffsetScenarios {
    static let all: [Scenario] =
        [
            .upload(
                "4.1.1/lower", .must, "4.1.1", "The client sends nothing more to an upload whose offset decreased.",
                covers: "CLI-33",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000, 200_000)
                    if request.kind == .retrieval, request.upload == 1, stage.step == 2 {
                        stage.setFirstOffset(40_000)
                        reaction.set("Upload-Offset", "40000")
                    }
                },
                verify: { try $0.expectNoAppend(afterLowerOffsetIn: .retrieval) }),
            .upload(
                "4.1.1/lower-progress", .should, "4.1.1",
                "The client sends nothing more to an upload whose offset is lower than one that a 104 reported.",
                covers: "CLI-33",
                script: { request, stage, reaction in
                    if [.creation, .append].contains(request.kind), request.reaches(80_000) {
                        let fields = request.profile.versionFields + [("Upload-Offset", "80000")]
                        reaction.interim.append(.init(status: 104, fields: fields, at: 80_000 - request.start))
                    }
                    stage.cut(request, &reaction, at: 100_000)
                    // A reset could discard the 104 before the client has read it. A normal close does not discard it.
                    if case .reset = reaction.ending { reaction.ending = .end }
                    if request.kind == .retrieval {
                        stage.setFirstOffset(40_000)
                        reaction.set("Upload-Offset", "40000")
                    }
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    let reported = record.of(.retrieval).first { reported in
                        record.of(.creation, .append).contains { $0.upload == reported.upload && $0.reaches(80_000) }
                    }
                    guard let reported else { throw record.skip("the client did not receive both offsets") }
                    try record.expectNoAppend(after: reported, "no append to an upload that lost acknowledged bytes")
                }),
            .upload(
                "4.3/higher", .should, "4.3.1",
                "An offset higher than the number of bytes sent is accepted, because the client has the data.",
                covers: "CLI-10",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 10_000)
                    if request.isFirst(.retrieval) {
                        stage.setFirstOffset(200_000)
                        reaction.set("Upload-Offset", "200000")
                    }
                },
                verify: { record in
                    try record.expectSuccess()
                    try record.expect(
                        record.of(.append).contains { $0.start == 200_000 }, "an append at 200000",
                        record.of(.append).last?.summary ?? "no append")
                }),
            .upload(
                "4.3/impossible", .must, "4.3.1",
                "The client appends nothing to an upload whose offset is beyond the end of the file.",
                covers: "CLI-09",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set("Upload-Offset", "\(stage.size + 1000)") }
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    guard let reported = record.of(.retrieval).first else {
                        throw record.skip("the client does not retrieve the offset")
                    }
                    try record.expectNoAppend(after: reported, "no append after an impossible offset")
                }),
            .upload(
                "4.4/conflict-lower", .must, "4.1.1",
                "The client sends nothing more to an upload after 409 with an offset lower than a previous one.",
                covers: "CLI-33",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    guard request.kind == .append, request.upload == 1, request.start >= 100_000 else { return }
                    stage.setFirstOffset(40_000)
                    reaction.refuse(409, [request.profile.completeness(false), ("Upload-Offset", "40000")])
                },
                verify: { try $0.expectNoAppend(afterLowerOffsetIn: .append) }),
            .upload(
                "4.4/conflict-beyond", .must, "4.3.1",
                "After 409 with an offset beyond the end of the file the client does not append at this offset.",
                covers: "CLI-09",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    guard request.kind == .append, request.upload == 1, request.start > 0 else { return }
                    let beyond = ("Upload-Offset", "\(stage.size + 1000)")
                    reaction.refuse(409, [request.profile.completeness(false), beyond])
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    guard record.of(.append).contains(where: { $0.status == 409 }) else {
                        throw record.skip("the client appends nothing")
                    }
                    try record.expectNone(
                        record.of(.append).filter { $0.start > record.size }, "no append at an impossible offset")
                }),
            .upload(
                "4.1.2/complete-early", .should, "4.1.2",
                "If the target refused an upload before all of it had arrived, the client sends nothing more and fails.",
                covers: "CLI-11",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    let complete = request.profile.completeness(true)
                    if request.kind == .retrieval {
                        stage.uploads.completeFirst()
                        reaction.set(complete.0, complete.1)
                    }
                    // A client that requests the response of the target gets this response.
                    if request.kind == .append, request.start > 0, !request.hasContent {
                        reaction.refuse(422, [complete])
                    }
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    if let reported = record.of(.retrieval).first {
                        let more = record.after(reported, .append).filter {
                            $0.upload == reported.upload && $0.hasContent
                        }
                        try record.expectNone(more, "no content to an upload that is complete")
                    }
                }),
            .upload(
                "4.1.3/other-length", .must, "4.1.3",
                "A client does not report success for an upload whose length is not that of the file.",
                covers: "CLI-05",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set("Upload-Length", "200000") }
                    if request.kind == .append, request.start > 0 {
                        reaction.refuse(400, [request.profile.completeness(false)])
                    }
                },
                verify: { try $0.expectTruthfulStatus() }),
            .upload(
                "9651/length", .must, "4.1", "Upload-Length of a type other than Integer counts as absent.",
                covers: "STF-13",
                script: { request, stage, reaction in
                    // A client that resumes after the first cut also resumes after the second cut.
                    stage.cut(request, &reaction, at: 50_000, 150_000)
                    if request.kind == .retrieval, stage.step == 2 { reaction.set("Upload-Length", "\"200000\"") }
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    let resumed = record.of(.retrieval).first.flatMap { reported in
                        record.after(reported, .append).first { $0.upload == reported.upload && $0.reaches(150_000) }
                    }
                    let isRetrieved = resumed.map { last in
                        record.after(last, .retrieval).contains { $0.upload == last.upload }
                    }
                    if isRetrieved != true { throw record.skip("the client does not resume after both cuts") }
                    try record.expectSuccess()
                }),
            .upload(
                "4.1.2/complete-on-retrieval", .must, "4.1",
                "Upload-Complete of a type other than Boolean does not make an upload complete.", covers: "STF-13",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set(request.profile.completenessName, "1") }
                },
                verify: { try $0.expectTruthfulStatus() }),
        ]
        + [
            ("decimal", "100000.0"), ("string", "\"100000\""), ("plus", "+100000"), ("negative", "-1"),
            ("two", "100000, 100000"), ("hexadecimal", "0x186A0"),
        ].map { name, value in
            .upload(
                "9651/offset-\(name)", .must, "4.1",
                "Upload-Offset: \(value) counts as absent: the client does not continue with it.", covers: "STF-13",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set("Upload-Offset", value) }
                },
                verify: { record in
                    try record.expectTruthfulStatus()
                    guard let first = record.of(.retrieval).first else {
                        throw record.skip("the client does not retrieve the offset")
                    }
                    // A client may append at offset 0, and then use the offset of the 409.
                    let used = record.after(first, .append).filter { append in
                        append.upload == first.upload && append.offset != 0
                            && !record.wasReported(append.offset, before: append)
                    }
                    try record.expectNone(used, "no append after an invalid offset")
                })
        }
}

extension ScenarioRecord {
    /// Expects no append after a request of this kind got the offset 40,000 although a higher one was received before.
    fileprivate func expectNoAppend(afterLowerOffsetIn kind: ScriptedRequest.Kind) throws {
        try expectTruthfulStatus()
        let reported = of(kind).first {
            $0.reportedOffset == 40_000 && hadReceivedOffset(ofAtLeast: 40_001, before: $0)
        }
        guard let reported else { throw skip("the client did not receive both offsets") }
        try expectNoAppend(after: reported, "no append to an upload that lost acknowledged bytes")
    }
}
