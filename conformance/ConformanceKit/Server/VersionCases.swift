/// The differences between the versions of the draft.
enum VersionCases {
    /// Returns the cases of one version that are run in addition to those of the base profile.
    static func cases(for profile: Profile, isBase: Bool) -> [Case] {
        let name = "v\(profile.word)"
        let repeated = isBase ? [] : shared.filter { $0.ranks.contains(profile.rank) }
        let names = Set(repeated.map(\.id))
        return repeated.map { next in
            Case(
                "\(name)/" + next.id.dropFirst(next.group.count + 1), next.level, next.section, next.requirement,
                covers: next.covers.joined(separator: " "),
                needs: next.needs.filter(names.contains).map { "\(name)/" + $0.drop { $0 != "/" }.dropFirst() },
                ranks: next.ranks, profile: profile, next.body)
        }
            + own(isBase ? "base" : name, profile).map { next in
                // In the base profile the needed cases have other IDs, so the renamed copy has no `needs`.
                isBase ? next.renamed("\(name)/" + next.id.dropFirst(5)) : next
            }
    }

    /// The cases of the base that are run in every version.
    private static let shared: [Case] = {
        let names = [
            "4.2/create-empty", "4.2/create-part", "4.2/created", "4.2/part-states-incomplete", "4.2/complete",
            "4.2/announcement", "4.2/announcement-location", "4.4/append", "4.4/finish", "4.2/interrupted-not-complete",
            "4.2/interrupted-continues", "4.2/length-recorded", "4.2/length-derived", "4.3/refuses-upload-fields",
            "4.3/unknown",
            "4.3/unknown-status", "4.4/finish-empty", "4.4/many-parts", "4.4/offset-mismatch", "4.4/mismatch-offset",
            "4.4/mismatch-incomplete", "4.4/mismatch-changes-nothing", "4.4/media-type-refused", "4.4/no-media-type",
            "4.4/states-incomplete", "4.4/states-complete", "4.1.2/completed-refuses-content", "4.5/cancel",
            "4.5/no-content", "4.1.3/length-is-not-completion", "4.1.3/length-reached", "7/completed-upload",
        ]
        let groups: [[Case]] = [
            CreationCases.basic, InterimCases.announcement, AppendCases.basic, CreationCases.all, RetrievalCases.all,
            AppendCases.all, CompletionCases.all, CancellationCases.all, LengthCases.all, ProblemCases.all,
        ]
        let all = groups.flatMap { $0 }
        return names.compactMap { name in all.first { $0.id == name } }
    }()

    private static func own(_ name: String, _ profile: Profile) -> [Case] {
        [
            Case(
                "\(name)/completeness-field", .must, "draft -01",
                "In version 3 responses have Upload-Incomplete, and never Upload-Complete.",
                covers: "VER-05", needs: ["\(name)/create-part"], ranks: 3...3, profile: profile
            ) { t in
                for isComplete in [false, true] {
                    let request = t.creation(complete: isComplete, .bytes(t.bytes(t.partSize)))
                    let response = try t.exchange(request)
                    var responses = [response]
                    let upload = try? t.upload(from: response, to: request)
                    if let upload, !isComplete {
                        let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
                        responses.append(try t.appending(upload, at: Int64(t.partSize), complete: false, content))
                        responses.append(try t.state(of: upload).response)
                    }
                    for response in responses {
                        try t.expect(
                            !response.fields.contains("Upload-Complete"), "no Upload-Complete", response.summary)
                        let stated = response.boolean("Upload-Incomplete")
                        try t.expect(
                            isComplete ? stated != true : stated == true,
                            isComplete ? "no Upload-Incomplete: ?1" : "Upload-Incomplete: ?1", response.summary)
                    }
                }
            },
            Case(
                "\(name)/default-completes", .must, "draft -01",
                "In version 3 an append without Upload-Incomplete completes the upload.",
                covers: "VER-06", needs: ["\(name)/finish"], ranks: 3...3, profile: profile
            ) { t in
                let upload = try t.newUpload(t.partSize)
                let response = try t.appending(
                    upload, at: Int64(t.partSize), complete: nil, .bytes(t.bytes(t.partSize)))
                try t.expectSuccess(response, "from the target")
                let head = try t.exchange(t.retrieval(upload), with: upload)
                try t.expect(
                    t.profile.isComplete(head) == true || head.status == 404, "a complete upload", head.summary)
            },
            Case(
                "\(name)/default-continues", .must, "draft -02 to -05",
                "In versions 4 to 6 an append without Upload-Complete does not complete the upload.", covers: "VER-07",
                needs: ["\(name)/append"], ranks: 4...6, profile: profile
            ) { t in
                let upload = try t.newUpload(t.partSize)
                let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
                try t.expectSuccess(t.appending(upload, at: Int64(t.partSize), complete: nil, content), "to the append")
                try t.expectState(of: upload, offset: Int64(t.partSize * 2))
            },
            Case(
                "\(name)/append-created", .must, "draft -01 to -05",
                "Up to version 6 an append that does not complete the upload gets 201.", covers: "VER-12",
                needs: ["\(name)/append"], ranks: 3...6, profile: profile
            ) { t in
                let response = try t.appending(t.newUpload(), at: 0, complete: false, .bytes(t.bytes(t.partSize)))
                try t.expect(response, isOneOf: [201], "to an append")
                try t.expect(
                    t.profile.isComplete(response) == false, t.profile.completenessLine(false), response.summary)
            },
            Case(
                "\(name)/offset-repeated", .must, "draft -01 to -05",
                "Up to version 6 the responses to creations and appends report the offset.", covers: "VER-10 VER-23",
                needs: ["\(name)/append"], ranks: 3...6, profile: profile
            ) { t in
                let request = t.creation(complete: false, .bytes(t.bytes(t.partSize)))
                let created = try t.exchange(request)
                try t.expect(
                    created.integer("Upload-Offset") == Int64(t.partSize), "Upload-Offset: \(t.partSize)",
                    created.summary)
                let upload = try t.upload(from: created, to: request)
                let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
                let appended = try t.appending(upload, at: Int64(t.partSize), complete: false, content)
                try t.expect(
                    appended.integer("Upload-Offset") == Int64(t.partSize * 2), "Upload-Offset: \(t.partSize * 2)",
                    appended.summary)
            },
            Case(
                "\(name)/location-of-upload", .must, "draft -01 to -05",
                "Up to version 6 the final response to a creation has the upload's Location, even after completion.",
                covers: "VER-11 VER-23", needs: ["\(name)/announcement", "\(name)/complete"], ranks: 3...6,
                profile: profile
            ) { t in
                let response = try t.exchange(t.creation(complete: true, .bytes(t.bytes(t.partSize))))
                try t.expectSuccess(response, "from the target")
                guard let announced = response.announcements.first?.location else { throw t.skip("no 104 is sent") }
                try t.expect(response.location == announced, "Location: \(announced)", response.summary)
            },
            Case(
                "\(name)/retrieval-status", .must, "draft -01 to -05",
                "A successful retrieval gets 204; in versions 5 and 6 also 200.",
                covers: "VER-13", needs: ["\(name)/create-empty"], ranks: 3...6, profile: profile
            ) { t in
                let response = try t.state(of: t.newUpload()).response
                try t.expect(response, isOneOf: t.profile.rank <= 4 ? [204] : [200, 204], "to HEAD")
            },
            Case(
                "\(name)/completed-status", .must, "draft -04, -05",
                "In version 6 an append to a complete upload gets 400.",
                covers: "VER-17 PRB-04", needs: ["\(name)/completed-refuses-content"], ranks: 6...6, profile: profile
            ) { t in
                let upload = try t.completedUpload(t.partSize)
                let response = try t.appending(
                    upload, at: Int64(t.partSize), complete: false, .bytes(t.bytes(t.partSize)))
                if response.status == 404 { throw t.skip("the server does not keep complete uploads") }
                try t.expect(response, isOneOf: [400], "to an append to a complete upload")
            },
            Case(
                "\(name)/length-from-content", .must, "draft -02 and later",
                "The Content-Length of a creation with ?1 is the length of the upload, and an append that contradicts it is refused.",
                covers: "VER-25", needs: ["\(name)/interrupted-not-complete"], ranks: 4...6, profile: profile
            ) { t in
                let (connection, upload, _) = try t.announcedUpload(sending: t.partSize, of: t.partSize * 3)
                connection.endOutput()
                let offset = try t.state(of: upload).offset
                let remaining = t.partSize * 3 - Int(offset) - 1
                let response = try t.appending(upload, at: offset, complete: true, .bytes(t.bytes(remaining)))
                try t.expectRefusal(response, "to a remainder that is too short")
            },
            Case(
                "\(name)/lifetime-key", .should, "draft -04 and later",
                "The key of the lifetime is expires in version 6, and max-age in later versions.",
                covers: "VER-19", needs: ["\(name)/create-empty"], ranks: 6...9, profile: profile
            ) { t in
                let response = try t.exchange(t.creation(complete: false, .bytes([])))
                guard let limits = response.limits, limits["max-age"] ?? limits["expires"] != nil else {
                    throw t.skip("the server reports no lifetime")
                }
                if t.profile.rank == 6 {
                    try t.expect(limits["expires"] != nil, "expires", response.summary)
                } else {
                    try t.expect(limits["max-age"] != nil && limits["expires"] == nil, "max-age", response.summary)
                }
            },
            Case(
                "\(name)/refusal-incomplete", .must, "draft -06",
                "In version 7 the refusal of an append has Upload-Complete: ?0.", covers: "VER-20",
                needs: ["\(name)/append"], ranks: 7...7, profile: profile
            ) { t in
                let upload = try t.newUpload(t.partSize)
                let append = t.append(upload, at: Int64(t.partSize), complete: true, .bytes(t.bytes(t.partSize)))
                    .replacing("Content-Type", by: "text/plain")
                let response = try t.exchange(append, with: upload)
                try t.expectRefusal(response, "to an append with another media type")
                try t.expect(
                    t.profile.isComplete(response) == false, t.profile.completenessLine(false), response.summary)
            },
            Case(
                "\(name)/continued-elsewhere", .should, "2",
                "An upload that began in one version can be finished in another.", covers: "VER-22",
                needs: ["\(name)/create-part"], profile: profile
            ) { t in
                guard t.subject.defaultProfile != profile else {
                    throw t.skip("this is the version of the other cases")
                }
                let upload = try t.newUpload(t.partSize)
                let state = try t.state(of: upload, in: t.subject.defaultProfile)
                try t.expect(state.offset == t.partSize, "Upload-Offset: \(t.partSize)", state.response.summary)
                let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
                let response = try t.appending(
                    upload, at: Int64(t.partSize), complete: true, content, in: t.subject.defaultProfile)
                try t.expectSuccess(response, "from the target")
            },
        ].filter { $0.ranks.contains(profile.rank) }
    }
}
