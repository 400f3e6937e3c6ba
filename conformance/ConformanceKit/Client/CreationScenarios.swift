/// Scenarios of the creation of uploads, and of interim responses.
enum CreationScenarios {
    static let all: [Scenario] = [
        .upload("4.2/complete", .must, "4.2", "A file is uploaded completely to a server without defects.") {
            try $0.expectSuccess()
        },
        .upload(
            "4.2/empty", .must, "4.2.1",
            "If the last request for an empty file is a creation, it has Upload-Complete: ?1.",
            covers: "CLI-26", size: 0
        ) { record in
            try record.expectSuccess()
            let last = record.of(.creation, .append, .plain).last
            try record.expect(
                last?.kind != .creation || last?.isComplete == true, "Upload-Complete: ?1 with an empty creation",
                last?.summary ?? "no request")
        },
        .upload(
            "4.2/no-104", .must, "4.2", "An upload succeeds if no 104 ever arrives.", covers: "CLI-23",
            script: { _, _, reaction in reaction.silence() },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.2/no-104-cut", .should, "4.2",
            "After an interrupted creation without a 104 the client does not guess the URL of the upload.",
            covers: "CLI-23",
            script: { request, stage, reaction in
                reaction.silence()
                if request.isComplete == true { stage.cut(request, &reaction, at: 100_000) }
            },
            verify: { record in
                try record.expectTruthfulStatus()
                let invented = record.of(.stray).filter { !record.stage.uploads.isTarget($0.target) }
                try record.expectNone(invented, "no request to a URL that the server has not sent")
            }),
        .upload(
            "4.2/unaware", .must, "4.2",
            "A client does not report success if a server without resumable uploads stored only a part of the file.",
            script: { request, stage, reaction in
                guard [.creation, .plain].contains(request.kind) else { return reaction.refuse(404) }
                reaction.silence()
                // The server handles the content of every request as a complete file.
                reaction.ending = .answer(.init(status: 201))
                reaction.isCompleting = true
            },
            verify: { try $0.expectTruthfulStatus() }),
        .upload(
            "4.2/unavailable", .should, "RFC 9110 15.6.4",
            "A creation that is refused with 503 is repeated after Retry-After, or not repeated.", covers: "CLI-13",
            script: { request, _, reaction in
                guard [.creation, .plain].contains(request.kind), request.count == 1 else { return }
                reaction.silence()
                reaction.refuse(503, [request.profile.completeness(false), ("Retry-After", "1")])
            },
            verify: { record in
                try record.expectTruthfulStatus()
                try record.expectPause(after: record.requests.first { $0.status == 503 }, milliseconds: 900)
            }),
        .upload(
            "5/late-104", .must, "4.2.2", "A 104 that arrives during the content is handled like an early one.",
            script: { _, _, reaction in
                for index in reaction.interim.indices where reaction.interim[index].status == 104 {
                    reaction.interim[index].at = 150_000
                }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "5/late-104-cut", .should, "4.2.2",
            "An upload that was announced during its content is resumed after an interruption.",
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
            "5/many-interims", .must, "RFC 9110 15.2",
            "Any number of interim responses is accepted, including unknown ones.",
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
                if record.stage.step == 0 { throw record.skip("the client sends no Expect: 100-continue") }
                try record.expectSuccess()
            }),
        .upload(
            "B/other-version", .must, "appendix B", "A 104 of another version of the draft is ignored.",
            covers: "CLI-02",
            script: { request, stage, reaction in
                let other = request.profile == .interop(7) ? "6" : "7"
                reaction.setAnnouncementField("Upload-Draft-Interop-Version", other)
                reaction.setAnnouncementField("Location", "/decoy")
                if request.isComplete == true { stage.cut(request, &reaction, at: 100_000) }
            }, verify: verifyDecoy),
        .upload(
            "B/no-version", .must, "appendix B", "A client of the draft ignores a 104 without a version.",
            covers: "CLI-02",
            script: { request, stage, reaction in
                reaction.setAnnouncementField("Upload-Draft-Interop-Version", nil)
                reaction.setAnnouncementField("Location", "/decoy")
                if request.isComplete == true { stage.cut(request, &reaction, at: 100_000) }
            }, verify: verifyDecoy),
        .upload(
            "4.2/application-location", .must, "4.2.2",
            "A final response with ?1 may have a different Location: the upload has succeeded.", covers: "CLI-20",
            script: { request, _, reaction in
                if reaction.isCompleting, request.profile.rank >= 7 { reaction.set("Location", "/documents/1") }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.1.2/silent-success", .should, "4.1.2",
            "A 2xx response without Upload-Complete to a request with ?1 means that the upload is complete.",
            covers: "CLI-34",
            script: { request, _, reaction in
                if reaction.isCompleting { reaction.set(request.profile.completenessName, nil) }
            },
            verify: { record in
                try record.expectSuccess()
                try record.expectRepeatedBytes(atMost: 0)
            }),
        .upload(
            "9651/complete-types", .should, "4.1",
            "Upload-Complete of a type other than Boolean counts as absent: 2xx to a request with ?1 is a success.",
            covers: "STF-13",
            script: { request, _, reaction in
                if reaction.isCompleting { reaction.set(request.profile.completenessName, "0") }
            },
            verify: { try $0.expectSuccess() }),
        .upload(
            "4.1.2/inverted", .must, "4.1.2", "A 2xx response with ?0 is not a success: the upload is not complete.",
            script: { request, stage, reaction in
                guard reaction.isCompleting, request.hasContent, request.kind != .plain else { return }
                reaction.isCompleting = false
                let (name, value) = request.profile.completeness(false)
                reaction.set(name, value)
            },
            verify: { try $0.expectTruthfulStatus() }),
    ]

    @Sendable private static func verifyDecoy(_ record: ScenarioRecord) throws {
        if record.of(.creation).allSatisfy({ $0.profile == .rfc }) {
            throw record.skip("the client sends no version of the draft")
        }
        try record.expectTruthfulStatus()
        try record.expectNone(
            record.of(.stray).filter { $0.target == "/decoy" }, "no request to the Location of the 104")
    }
}
