/// Section 4.1.3: consistency of all indications of the length.
enum LengthCases {
    static let all: [Case] = [
        Case(
            "4.1.3/creation-mismatch", .must, "4.1.3",
            "A creation whose Content-Length contradicts its Upload-Length is refused.", covers: "LEN-01",
            needs: ["4.2/complete"], ranks: 6...9
        ) { t in
            for length in [t.partSize + 1, t.partSize - 1] {
                let response = try t.exchange(t.creation(complete: true, length: length, .bytes(t.bytes(t.partSize))))
                try t.expectRefusal(response, "to \(t.partSize) bytes with ?1 and Upload-Length: \(length)")
                try t.expect(
                    t.profile.isComplete(response) != true, "no \(t.profile.completenessLine(true)) in the refusal",
                    response.summary)
            }
            let part = try t.exchange(t.creation(complete: false, length: t.partSize - 1, .bytes(t.bytes(t.partSize))))
            try t.expectRefusal(part, "to \(t.partSize) bytes with ?0 and Upload-Length: \(t.partSize - 1)")
        },
        Case(
            "4.1.3/changed", .must, "4.1.3",
            "An append with an Upload-Length that differs from the known length is refused.",
            covers: "LEN-02", needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 3)
            let content = Request.Content.bytes(t.bytes(t.partSize))
            for length in [t.partSize * 3 + 1, t.partSize * 2, t.partSize - 1, 0] {
                let response = try t.appending(
                    upload, at: Int64(t.partSize), complete: false, length: length, content)
                try t.expectRefusal(response, "to Upload-Length: \(length)")
            }
            try t.expectState(of: upload, offset: Int64(t.partSize))
        },
        Case(
            "4.1.3/remainder", .must, "4.1.3",
            "An append with ?1 that does not end at the known length is refused and changes nothing.",
            covers: "LEN-03 VER-25", needs: ["4.4/append"], ranks: 6...9
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 3)
            for count in [t.partSize * 2 - 1, t.partSize * 2 + 1, t.partSize, 0] {
                let response = try t.appending(upload, at: Int64(t.partSize), complete: true, .bytes(t.bytes(count)))
                try t.expectRefusal(response, "to a last part of \(count) bytes")
                try t.expect(
                    t.profile.isComplete(response) != true, "no \(t.profile.completenessLine(true)) in the refusal",
                    response.summary)
            }
            try t.expectState(of: upload, offset: Int64(t.partSize))
        },
        Case(
            "4.1.3/excess-declared", .must, "4.4.2",
            "An append whose Content-Length exceeds the known length is refused.",
            covers: "LEN-05", needs: ["4.4/append"], ranks: 6...9
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 2)
            for isComplete in [false, true] {
                let content = Request.Content.bytes(t.bytes(t.partSize + 1, from: t.partSize))
                try t.expectRefusal(
                    t.appending(upload, at: Int64(t.partSize), complete: isComplete, content),
                    "to an append longer by one byte")
            }
            try t.expectNeverBeyond(t.partSize * 2, upload)
        },
        Case(
            "4.4/overrun", .must, "4.4.2", "A chunked append that exceeds the known length is refused.",
            covers: "LEN-05",
            needs: ["4.4/chunked"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 2)
            let chunks = Request.Content.chunks([t.bytes(t.partSize, from: t.partSize), t.bytes(1)])
            try t.expectRefusal(
                t.appending(upload, at: Int64(t.partSize), complete: false, chunks), "to an append longer by one chunk")
            try t.expectNeverBeyond(t.partSize * 2, upload)
        },
        Case(
            "4.4/overrun-invalidates", .must, "4.4.2",
            "An upload whose content exceeded its length is invalid afterwards.",
            covers: "LEN-06", needs: ["4.4/overrun"], ranks: 8...9
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 2)
            let chunks = Request.Content.chunks([t.bytes(t.partSize, from: t.partSize), t.bytes(1)])
            _ = try t.setup { try t.appending(upload, at: Int64(t.partSize), complete: false, chunks) }
            let head = try t.exchange(t.retrieval(upload), with: upload)
            try t.expectRefusal(head, "to HEAD of the invalid upload")
            let append = try t.appending(upload, at: Int64(t.partSize * 2), complete: true, .bytes([]))
            try t.expectRefusal(append, "to an append to the invalid upload")
        },
        Case(
            "4.4/overrun-at-once", .must, "4.4.2",
            "An append that exceeds the length is refused before its content ends.",
            covers: "LEN-07 SEC-11", needs: ["4.4/overrun"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(0, length: t.partSize)
            let connection = try t.connect(to: upload.endpoint)
            let request = t.append(upload, at: 0, complete: false, .openChunks)
            t.setLastRequest(request, upload.endpoint)
            try connection.send(request)
            try connection.send(Request.chunk(t.bytes(64 << 10)), stoppingAtResponse: true)
            try t.expectRefusal(connection.readResponse(), "before the last chunk")
        },
        Case(
            "4.1.3/too-short", .must, "4.1.3",
            "A chunked append with ?1 that ends before the known length does not complete the upload.",
            covers: "LEN-08", needs: ["4.4/chunked"], ranks: 6...9
        ) { t in
            let upload = try t.newUpload(0, length: t.partSize * 3)
            let response = try t.appending(upload, at: 0, complete: true, .chunks([t.bytes(t.partSize)]))
            try t.expect(!response.isSuccessful, "a response other than 2xx", response.summary)
            let head = try t.exchange(t.retrieval(upload), with: upload)
            try t.expect(t.profile.isComplete(head) != true, "an incomplete upload", head.summary)
        },
        Case(
            "4.1.3/late-length", .must, "4.1.3", "The length may first be stated by an append.", covers: "LEN-09",
            needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
            try t.expectSuccess(
                t.appending(upload, at: Int64(t.partSize), complete: false, length: t.partSize * 4, content),
                "to an append with Upload-Length")
            let response = try t.state(of: upload).response
            try t.expect(
                response.integer("Upload-Length") == Int64(t.partSize * 4), "Upload-Length: \(t.partSize * 4)",
                response.summary)
        },
        Case(
            "4.1.3/length-of-append", .must, "4.1.3",
            "The Content-Length of an append with ?1 determines the length, even if the append is interrupted.",
            covers: "LEN-09 OFF-03", needs: ["4.4/interrupted-not-complete"], ranks: 6...9
        ) { t in
            let (connection, upload) = try t.interruptedAppend(sending: t.partSize, of: t.partSize * 2)
            _ = try? connection.awaitEnding()
            let response = try t.state(of: upload).response
            try t.expect(
                response.integer("Upload-Length") == Int64(t.partSize * 3), "Upload-Length: \(t.partSize * 3)",
                response.summary)
        },
        Case(
            "4.1.3/below-offset", .must, "4.1.3", "An Upload-Length below the offset is refused.", covers: "LEN-10",
            needs: ["4.1.3/late-length"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize * 2)
            let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize * 2))
            let response = try t.appending(
                upload, at: Int64(t.partSize * 2), complete: false, length: t.partSize, content)
            try t.expectRefusal(response, "to Upload-Length: \(t.partSize) at offset \(t.partSize * 2)")
            let head = try t.state(of: upload).response
            try t.expect(!head.fields.contains("Upload-Length"), "no Upload-Length", head.summary)
        },
        Case(
            "4.1.3/zero", .must, "4.1.3", "A creation with Upload-Length: 0, ?1 and no content stores an empty file.",
            covers: "LEN-11 CRE-13",
            needs: ["4.2/empty-complete"], ranks: 6...9
        ) { t in
            let request = t.creation(complete: true, length: 0, .bytes([]))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "from the target")
            try t.expectFile(of: response, to: request, [])
            try t.expect(
                t.profile.isComplete(response) != false,
                "no \(t.profile.completenessLine(false)) in the final response", response.summary)
        },
        Case(
            "4.1.3/overflow", .must, "4.1.3", "A Content-Length that is larger than any representation is refused.",
            covers: "LEN-12 APP-25", needs: ["4.4/append"]
        ) { t in
            for length in [Int64.max, 999_999_999_999_999] {
                let upload = try t.newUpload(t.partSize)
                let connection = try t.connect(to: upload.endpoint)
                let request = t.append(upload, at: Int64(t.partSize), complete: true, .declared(length))
                t.setLastRequest(request, upload.endpoint)
                try connection.send(request)
                let response = try connection.readResponse()
                try t.expect(
                    response.isRefusal || response.status >= 500, "a refusal of \(length) bytes", response.summary)
                try t.expectState(of: upload, offset: Int64(t.partSize))
            }
        },
        Case(
            "4.1.3/order", .should, "4.4.2", "An append with a wrong offset and a wrong length gets 409.",
            covers: "LEN-13",
            needs: ["4.4/offset-mismatch"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 3)
            let response = try t.appending(upload, at: 0, complete: true, .bytes(t.bytes(t.partSize)))
            try t.expect(response, isOneOf: [409], "to a wrong offset with a wrong length")
        },
        Case(
            "4.1.3/invalid-ignored", .must, "4.1.3", "An Upload-Length that is not an Integer is ignored.",
            covers: "LEN-14 STF-04 STF-05", needs: ["4.2/create-part"], ranks: Profile.explicitRanks
        ) { t in
            for value in ["\"10\"", "-5", "+5", "1.0", "1000000000000000", "abc", "1, 1", ""] {
                let complete = t.creation(complete: true, .bytes(t.bytes(t.partSize))).with("Upload-Length", value)
                try t.expectSuccess(t.exchange(complete), "to Upload-Length: \(value)")
                let request = t.creation(complete: false, .bytes(t.bytes(t.partSize))).with("Upload-Length", value)
                let response = try t.exchange(request)
                try t.expectSuccess(response, "to Upload-Length: \(value)")
                let upload = try t.upload(from: response, to: request)
                let head = try t.state(of: upload).response
                try t.expect(!head.fields.contains("Upload-Length"), "no Upload-Length after \(value)", head.summary)
            }
        },
    ]
}

extension CaseContext {
    /// Expects that the upload is invalid, or that its offset does not exceed the length.
    func expectNeverBeyond(_ length: Int, _ upload: Upload) throws {
        let head = try exchange(retrieval(upload), with: upload)
        guard head.isSuccessful, let offset = head.integer("Upload-Offset") else { return }
        try expect(offset <= length, "an offset of \(length) at most", "\(offset)")
        try expect(profile.isComplete(head) != true, "an incomplete upload", head.summary)
    }
}
