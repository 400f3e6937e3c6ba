/// Sections 4.1.2 and 4.1.3: completion of uploads, and requests for complete uploads.
enum CompletionCases {
    static let all: [Case] = [
        Case(
            "4.1.3/length-is-not-completion", .must, "4.1.3",
            "An append with ?0 does not complete the upload, even if it reaches the length.",
            covers: "CMP-01 CMP-02",
            needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 2)
            let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
            let response = try t.appending(upload, at: Int64(t.partSize), complete: false, content)
            try t.expectSuccess(response, "to an append up to the length")
            try t.expect(
                t.profile.isComplete(response) != true, "no \(t.profile.completenessLine(true)) in the response",
                response.summary)
            try t.expectState(of: upload, offset: Int64(t.partSize * 2))
        },
        Case(
            "4.1.3/creation-length-is-not-completion", .must, "4.1.3",
            "A creation with ?0 does not complete the upload, even if it reaches the length.", covers: "CMP-01",
            needs: ["4.2/create-part"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize)
            try t.expectState(of: upload, offset: Int64(t.partSize))
            let response = try t.appending(upload, at: Int64(t.partSize), complete: true, .bytes([]))
            try t.expectSuccess(response, "to the append that finishes the upload")
        },
        Case(
            "4.1.3/length-reached", .must, "draft -03 to -05",
            "In versions 5 and 6 content that reaches the declared length either completes the upload or leaves it incomplete until ?1.",
            covers: "VER-24", needs: ["4.2/create-part", "4.4/append"], ranks: 5...6
        ) { t in
            for (first, second) in [(0, 0), (t.partSize, 0), (t.partSize, t.partSize)] {
                let request = t.creation(complete: false, length: first + second, .bytes(t.bytes(first)))
                var response = try t.exchange(request)
                try t.expectSuccess(response, "to a creation with ?0")
                let upload = try t.upload(from: response, to: request)
                if second > 0 {
                    let content = Request.Content.bytes(t.bytes(second, from: first))
                    response = try t.appending(upload, at: Int64(first), complete: false, content)
                    try t.expectSuccess(response, "to an append up to the length")
                }
                try t.expectEitherEnd(of: upload, response, to: request, length: first + second)
            }
        },
        Case(
            "4.1.2/completed-refuses-content", .must, "4.1.2",
            "An append with content to a complete upload is refused.",
            covers: "APP-19 VER-17", needs: ["4.4/finish"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(t.partSize)
            let finished = try t.setup { try t.appending(upload, at: Int64(t.partSize), complete: true, .bytes([])) }
            for isComplete in [false, true] {
                let more = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
                try t.expectRefusal(
                    t.appending(upload, at: Int64(t.partSize), complete: isComplete, more),
                    "to an append to a complete upload")
            }
            try t.expectFile(of: finished, to: request, t.bytes(t.partSize))
        },
        Case(
            "4.1.2/refusal-is-not-completion", .must, "4.1.2",
            "The refusal of an append to a complete upload does not have ?1, because ?1 marks the target's response.",
            covers: "APP-21 APP-07",
            needs: ["4.1.2/completed-refuses-content"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.completedUpload(t.partSize)
            let content = Request.Content.bytes(t.bytes(t.partSize))
            for offset in [Int64(t.partSize), 0, Int64(t.partSize) + 5] {
                let response = try t.appending(upload, at: offset, complete: false, content)
                try t.expect(t.profile.isComplete(response) != true, "no Upload-Complete: ?1", response.summary)
                if response.status == 409 {
                    try t.expect(t.profile.isComplete(response) == false, "Upload-Complete: ?0", response.summary)
                    try t.expect(
                        response.integer("Upload-Offset") == Int64(t.partSize), "Upload-Offset: \(t.partSize)",
                        response.summary)
                }
            }
        },
        Case(
            "4.4/replay", .may, "4.4.2", "A repeated completing append gets the same final response again.",
            covers: "APP-20 APP-28", needs: ["4.4/finish-empty"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let first = try t.setup { try t.appending(upload, at: Int64(t.partSize), complete: true, .bytes([])) }
            let again = try t.appending(upload, at: Int64(t.partSize), complete: true, .bytes([]))
            guard again.isSuccessful else { throw t.skip("the repeated append is refused (\(again.status))") }
            try t.expect(again.status == first.status, "\(first.status) again", again.summary)
            try t.expect(t.profile.isComplete(again) == true, "Upload-Complete: ?1", again.summary)
            try t.expect(again.content == first.content, "the same content", again.text)
        },
    ]
}

extension CaseContext {
    /// Expects that the upload is complete, or that an empty append completes it. `response` is the answer to the
    /// request with the last part of the content.
    fileprivate func expectEitherEnd(
        of upload: Upload, _ response: Response, to request: Request, length: Int
    ) throws {
        let head = try exchange(retrieval(upload), with: upload)
        let isComplete =
            head.isSuccessful
            ? profile.isComplete(response) == true || profile.isComplete(head) == true
            : profile.isComplete(response) == true && [404, 410].contains(head.status)
        if head.isSuccessful {
            try expect(head.integer("Upload-Offset") == Int64(length), "Upload-Offset: \(length)", head.summary)
        }
        let finish = try appending(upload, at: Int64(length), complete: true, .bytes([]))
        if isComplete {
            // The upload was complete before this append.
            try expect(finish.isSuccessful || finish.isRefusal, "the final response or a refusal", finish.summary)
            try expectFile(of: response, to: request, bytes(length))
        } else {
            try expectSuccess(finish, "to the append that finishes the upload")
            try expectFile(of: finish, to: request, bytes(length))
        }
    }
}
