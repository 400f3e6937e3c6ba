/// Uploads that begin and end without interruption, with and without the server's help.
enum CreationScenarios {
    static let all: [Scenario] = [
        .upload("4.2/whole", .must, "4.2", "A file arrives whole at a server that does everything rightly.") {
            try $0.expectSuccess()
        },
        .upload(
            "4.2/empty", .must, "4.2.1", "An empty representation is one request with ?1 and empty content.",
            covers: "CLI-26", size: 0
        ) { record in
            try record.expectSuccess()
            let last = record.of(.creation, .append, .plain).last
            try record.expect(
                last?.kind != .creation || last?.isComplete == true, "Upload-Complete: ?1 with an empty creation",
                last?.summary ?? "no request")
        },
        .upload(
            "4.2/no-104", .must, "4.2", "An upload succeeds where no 104 ever arrives.", covers: "CLI-23",
            script: { _, _, reaction in reaction.silence() },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.2/no-104-cut", .should, "4.2",
            "Without a 104 an interrupted creation is not resumed at a URL that the server has not sent.",
            covers: "CLI-23",
            script: { request, stage, reaction in
                reaction.silence()
                if request.isComplete == true { stage.cut(request, &reaction, at: 100_000) }
            },
            verify: { record in
                try record.expectHonesty()
                let invented = record.of(.stray).filter { !record.stage.uploads.isTarget($0.target) }
                try record.expectNone(invented, "no request to an invented place")
            }),
        .upload(
            "4.2/unaware", .must, "4.2",
            "A server that never heard of resumable uploads is not taken for one that has the whole file.",
            script: { request, stage, reaction in
                guard [.creation, .plain].contains(request.kind) else { return reaction.refuse(404) }
                reaction.silence()
                // It takes the content of every request for all there is.
                reaction.ending = .answer(.init(status: 201))
                reaction.completes = true
            },
            verify: { try $0.expectHonesty() }),
        .upload(
            "4.2/unavailable", .should, "RFC 9110 15.6.4",
            "A creation that is refused with 503 is repeated after Retry-After, or given up.", covers: "CLI-13",
            script: { request, _, reaction in
                guard [.creation, .plain].contains(request.kind), request.count == 1 else { return }
                reaction.silence()
                reaction.refuse(503, [request.profile.completeness(false), ("Retry-After", "1")])
            },
            verify: { record in
                try record.expectHonesty()
                try record.expectPause(after: record.requests.first { $0.status == 503 }, milliseconds: 900)
            }),
        .upload(
            "5/late-104", .must, "4.2.2", "A 104 that comes late, amid the content, is as good as an early one.",
            script: { _, _, reaction in
                for index in reaction.interim.indices where reaction.interim[index].status == 104 {
                    reaction.interim[index].at = 150_000
                }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "5/late-104-cut", .should, "4.2.2", "An upload that was announced late is resumed like any other.",
            size: 8 << 20,
            script: { request, stage, reaction in
                for index in reaction.interim.indices where reaction.interim[index].status == 104 {
                    reaction.interim[index].at = 1 << 20
                }
                if request.kind == .creation, request.reaches(6 << 20) {
                    stage.step += 1
                    if stage.step == 1 { reaction.cut(after: 6 << 20) }
                }
            },
            verify: { record in
                try record.expectSuccess()
            }),
        .upload(
            "5/many-interims", .must, "RFC 9110 15.2", "Any number of interim responses is taken, unknown ones too.",
            covers: "CLI-22",
            script: { request, _, reaction in
                guard [.creation, .append].contains(request.kind) else { return }
                reaction.interim += [.init(status: 102), .init(status: 103, fields: [("Link", "</a>; rel=preload")])]
                reaction.interim += [.init(status: 199, at: 1)]
                let version = request.profile.versionFields
                let end = min(250_000, request.contentLength ?? 250_000)
                for count in stride(from: Int64(5000), through: end, by: 5000) {
                    let offset = ("Upload-Offset", "\(request.start + count)")
                    reaction.interim.append(.init(status: 104, fields: version + [offset], at: count))
                }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "5/continue", .may, "5", "With Expect: 100-continue a 104 counts as permission to send the content.",
            covers: "CLI-21",
            script: { request, stage, reaction in
                if request.fields.contains("Expect") { stage.step = 1 }
                reaction.interim.removeAll { $0.status == 100 }
            },
            verify: { record in
                if record.stage.step == 0 { throw record.skip("the client never expects 100") }
                try record.expectSuccess()
            }),
        .upload(
            "B/other-version", .must, "B", "A 104 of another version of the draft is ignored.", covers: "CLI-02",
            script: { request, stage, reaction in
                let other = request.profile == .interop(7) ? "6" : "7"
                reaction.announce("Upload-Draft-Interop-Version", other)
                reaction.announce("Location", "/decoy")
                if request.isComplete == true { stage.cut(request, &reaction, at: 100_000) }
            }, verify: verifyDecoy),
        .upload(
            "B/no-version", .must, "B", "A 104 without a version means nothing to a client of the draft.",
            covers: "CLI-02",
            script: { request, stage, reaction in
                reaction.announce("Upload-Draft-Interop-Version", nil)
                reaction.announce("Location", "/decoy")
                if request.isComplete == true { stage.cut(request, &reaction, at: 100_000) }
            }, verify: verifyDecoy),
        .upload(
            "4.2/application-location", .must, "4.2.2",
            "A final response with ?1 may have a Location of its own: the upload has succeeded.", covers: "CLI-20",
            script: { request, _, reaction in
                if reaction.completes, request.profile.rank >= 7 { reaction.set("Location", "/documents/1") }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.1.2/silent-success", .should, "4.1.2",
            "2xx without Upload-Complete, to a request with ?1, means that the upload is complete.", covers: "CLI-34",
            script: { request, _, reaction in
                if reaction.completes { reaction.set(request.profile.completenessName, nil) }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expectThrift(0)
            }),
        .upload(
            "9651/complete-types", .should, "4.1",
            "Upload-Complete of another type than Boolean is as good as absent: 2xx to ?1 is a success.",
            covers: "STF-13",
            script: { request, _, reaction in
                if reaction.completes { reaction.set(request.profile.completenessName, "0") }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.1.2/inverted", .must, "4.1.2", "2xx with ?0 is no success: the upload is not complete.",
            script: { request, stage, reaction in
                guard reaction.completes, request.bearsContent, request.kind != .plain else { return }
                reaction.completes = false
                let (name, value) = request.profile.completeness(false)
                reaction.set(name, value)
            },
            verify: { try $0.expectHonesty() }),
    ]

    @Sendable private static func verifyDecoy(_ record: ScenarioRecord) throws {
        if record.of(.creation).allSatisfy({ $0.profile == .rfc }) {
            throw record.skip("the client names no version of the draft")
        }
        try record.expectHonesty()
        try record.expectNone(
            record.of(.stray).filter { $0.target == "/decoy" }, "no request to the place that the 104 named")
    }
}
