/// Section 7: problem types.
enum ProblemCases {
    static let all: [Case] = [
        Case(
            "7/mismatching-offset", .may, "7.1", "A problem document in a 409 has the type mismatching-upload-offset.",
            covers: "PRB-01", needs: ["4.4/offset-mismatch"], ranks: 6...9
        ) { t in
            let problem = try t.problem(of: t.mismatches()[0])
            try t.expect(
                problem.type == ProblemDocument.registry + "mismatching-upload-offset",
                ProblemDocument.registry + "mismatching-upload-offset", problem.type ?? "no type")
        },
        Case(
            "7/mismatching-members", .should, "7.1",
            "The problem mismatching-upload-offset has both offsets as numbers.", covers: "PRB-02",
            needs: ["7/mismatching-offset"], ranks: 6...9
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let response = try t.appending(
                upload, at: Int64(t.partSize) + 3, complete: false, .bytes(t.bytes(t.partSize)))
            let problem = try t.problem(of: response)
            try t.expect(
                problem.integer("expected-offset") == Int64(t.partSize), "expected-offset: \(t.partSize)", response.text
            )
            try t.expect(
                problem.integer("provided-offset") == Int64(t.partSize) + 3, "provided-offset: \(t.partSize + 3)",
                response.text
            )
        },
        Case(
            "7/inconsistent-length", .may, "7.2",
            "A problem document about inconsistent lengths has status 400 and the type inconsistent-upload-length.",
            covers: "LEN-04", needs: ["4.1.3/changed"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 3)
            let other = try t.newUpload(t.partSize * 2)
            let content = Request.Content.bytes(t.bytes(t.partSize))
            let responses = try [
                t.appending(upload, at: Int64(t.partSize), complete: false, length: t.partSize * 4, content),
                t.appending(upload, at: Int64(t.partSize), complete: true, content),
                t.appending(other, at: Int64(t.partSize * 2), complete: false, length: t.partSize, content),
                t.exchange(t.creation(complete: true, length: t.partSize + 1, content)),
                t.exchange(t.creation(complete: false, length: t.partSize - 1, content)),
            ]
            for response in responses {
                let problem = try t.problem(of: response)
                try t.expect(response, isOneOf: [400], "to an inconsistent length")
                try t.expect(
                    problem.type == ProblemDocument.registry + "inconsistent-upload-length",
                    ProblemDocument.registry + "inconsistent-upload-length", problem.type ?? "no type")
            }
        },
        Case(
            "7/completed-upload", .should, "7 of draft -11",
            "The problem type completed-upload is sent only in versions that define it.", covers: "PRB-04",
            needs: ["4.1.2/completed-refuses-content"]
        ) { t in
            let upload = try t.completedUpload(t.partSize)
            let response = try t.appending(upload, at: Int64(t.partSize), complete: false, .bytes(t.bytes(t.partSize)))
            let isNamed = response.text.contains("#completed-upload")
            if (6...8).contains(t.profile.rank) {
                t.note(isNamed ? "completed-upload is sent" : "completed-upload is not sent")
            } else {
                try t.expect(!isNamed, "no completed-upload to \(t.profile)", response.text)
            }
        },
    ]
}

extension CaseContext {
    func problem(of response: Response) throws -> ProblemDocument {
        guard response.single("Content-Type")?.lowercased().hasPrefix("application/problem+json") == true else {
            throw skip("the server sends no problem documents")
        }
        return try require(ProblemDocument(response.content), "a JSON object", response.text)
    }
}
