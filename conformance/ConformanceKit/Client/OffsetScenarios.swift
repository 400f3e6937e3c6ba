/// What a server reports of an upload that was interrupted, and what cannot be.
enum OffsetScenarios {
    static let all: [Scenario] =
        [
            .upload(
                "4.1.1/lower", .must, "4.1.1", "An upload whose offset has become lower gets nothing more.",
                covers: "CLI-33",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000, 200_000)
                    if request.kind == .retrieval, request.upload == 1, stage.step == 2 {
                        stage.pretend(40_000)
                        reaction.set("Upload-Offset", "40000")
                    }
                },
                verify: { record in
                    try record.expectHonesty()
                    let reported = record.of(.retrieval).first {
                        $0.toldOffset == 40_000 && record.knew(atLeast: 40_001, before: $0)
                    }
                    guard let reported else { throw record.skip("the client was not reported both offsets") }
                    try record.expectNoAppend(after: reported, "nothing sent to an upload that lost acknowledged bytes")
                }),
            .upload(
                "4.1.1/lower-progress", .should, "4.1.1",
                "An upload whose offset is lower than the one that a 104 reported gets nothing more.", covers: "CLI-33",
                script: { request, stage, reaction in
                    if [.creation, .append].contains(request.kind), request.reaches(80_000) {
                        let fields = request.profile.versionFields + [("Upload-Offset", "80000")]
                        reaction.interim.append(.init(status: 104, fields: fields, at: 80_000 - request.start))
                    }
                    stage.cut(request, &reaction, at: 100_000)
                    // A reset could destroy the 104 before the client has read it; an orderly end comes after it.
                    if case .reset = reaction.ending { reaction.ending = .end }
                    if request.kind == .retrieval {
                        stage.pretend(40_000)
                        reaction.set("Upload-Offset", "40000")
                    }
                },
                verify: { record in
                    try record.expectHonesty()
                    let reported = record.of(.retrieval).first { reported in
                        record.of(.creation, .append).contains { $0.upload == reported.upload && $0.reaches(80_000) }
                    }
                    guard let reported else { throw record.skip("the client was not reported both offsets") }
                    try record.expectNoAppend(after: reported, "nothing sent to an upload that lost acknowledged bytes")
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
                verify: { record in
                    try record.expectSuccess()
                    try record.expect(
                        record.of(.append).contains { $0.start == 200_000 }, "an append at 200000",
                        record.of(.append).last?.summary ?? "no append")
                }),
            .upload(
                "4.3/impossible", .must, "4.3.1",
                "To an upload whose offset is beyond the end of the file nothing is appended.",
                covers: "CLI-09",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set("Upload-Offset", "\(stage.size + 1000)") }
                },
                verify: { record in
                    try record.expectHonesty()
                    guard let reported = record.of(.retrieval).first else {
                        throw record.skip("the client does not ask for the offset")
                    }
                    try record.expectNoAppend(after: reported, "no append after an offset that cannot be")
                }),
            .upload(
                "4.4/conflict-lower", .must, "4.1.1",
                "After 409 with an offset lower than one that was reported before an upload gets nothing more.",
                covers: "CLI-33",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    guard request.kind == .append, request.upload == 1, request.start >= 100_000 else { return }
                    stage.pretend(40_000)
                    reaction.refuse(409, [request.profile.completeness(false), ("Upload-Offset", "40000")])
                },
                verify: { record in
                    try record.expectHonesty()
                    let reported = record.of(.append).first {
                        $0.toldOffset == 40_000 && record.knew(atLeast: 40_001, before: $0)
                    }
                    guard let reported else { throw record.skip("the client was not reported both offsets") }
                    try record.expectNoAppend(after: reported, "nothing sent to an upload that lost acknowledged bytes")
                }),
            .upload(
                "4.4/conflict-beyond", .must, "4.3.1",
                "After 409 with an offset beyond the end of the file nothing is appended there.",
                covers: "CLI-09",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    guard request.kind == .append, request.upload == 1, request.start > 0 else { return }
                    let beyond = ("Upload-Offset", "\(stage.size + 1000)")
                    reaction.refuse(409, [request.profile.completeness(false), beyond])
                },
                verify: { record in
                    try record.expectHonesty()
                    guard record.of(.append).contains(where: { $0.status == 409 }) else {
                        throw record.skip("the client appends nothing")
                    }
                    try record.expectNone(
                        record.of(.append).filter { $0.start > record.size }, "no append at an offset that cannot be")
                }),
            .upload(
                "4.1.2/complete-early", .should, "4.1.2",
                "An upload that the target has refused before everything had arrived gets nothing more, and is no success.",
                covers: "CLI-11",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    let complete = request.profile.completeness(true)
                    if request.kind == .retrieval {
                        stage.uploads.completeFirst()
                        reaction.set(complete.0, complete.1)
                    }
                    // Who asks for the answer gets it.
                    if request.kind == .append, request.start > 0, !request.bearsContent {
                        reaction.refuse(422, [complete])
                    }
                },
                verify: { record in
                    try record.expectHonesty()
                    if let reported = record.of(.retrieval).first {
                        let more = record.after(reported, .append).filter {
                            $0.upload == reported.upload && $0.bearsContent
                        }
                        try record.expectNone(more, "no content to an upload that is complete")
                    }
                }),
            .upload(
                "4.1.3/other-length", .must, "4.1.3",
                "An upload whose length is not that of the file is not finished as if it were.", covers: "CLI-05",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set("Upload-Length", "200000") }
                    if request.kind == .append, request.start > 0 {
                        reaction.refuse(400, [request.profile.completeness(false)])
                    }
                },
                verify: { try $0.expectHonesty() }),
            .upload(
                "9651/length", .must, "4.1", "Upload-Length of another type than Integer is as good as absent.",
                covers: "STF-13",
                script: { request, stage, reaction in
                    // A client that continued the first time would do so again.
                    stage.cut(request, &reaction, at: 50_000, 150_000)
                    if request.kind == .retrieval, stage.step == 2 { reaction.set("Upload-Length", "\"200000\"") }
                },
                verify: { record in
                    try record.expectHonesty()
                    let resumed = record.of(.retrieval).first.flatMap { reported in
                        record.after(reported, .append).first { $0.upload == reported.upload && $0.reaches(150_000) }
                    }
                    let isAsked = resumed.map { last in
                        record.after(last, .retrieval).contains { $0.upload == last.upload }
                    }
                    if isAsked != true { throw record.skip("the client does not continue twice") }
                    try record.expectSuccess()
                }),
            .upload(
                "4.1.2/complete-on-retrieval", .must, "4.1",
                "Upload-Complete of another type than Boolean does not make an upload complete.", covers: "STF-13",
                script: { request, stage, reaction in
                    stage.cut(request, &reaction, at: 100_000)
                    if request.kind == .retrieval { reaction.set(request.profile.completenessName, "1") }
                },
                verify: { try $0.expectHonesty() }),
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
                    try record.expectHonesty()
                    guard let first = record.of(.retrieval).first else {
                        throw record.skip("the client does not ask for the offset")
                    }
                    // A client may try the beginning, and use the offset of the 409.
                    let used = record.after(first, .append).filter { append in
                        append.upload == first.upload && append.offset != 0
                            && !record.wasTold(append.offset, before: append)
                    }
                    try record.expectNone(used, "no append after an offset that is none")
                })
        }
}
