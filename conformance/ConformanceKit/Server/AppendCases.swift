/// Section 4.4: appending to an upload.
enum AppendCases {
    /// The cases on which most others depend.
    static let basic: [Case] = [
        Case(
            "4.4/append", .must, "4.4.2", "An append at the offset of the upload adds its content.", covers: "APP-01",
            needs: ["4.2/create-part"]
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
            try t.expectSuccess(
                t.appending(upload, at: Int64(t.partSize), complete: false, content), "to an append at the offset")
            try t.expectState(of: upload, offset: Int64(t.partSize * 2))
        },
        Case(
            "4.4/states-incomplete", .must, "4.4.2",
            "The response to an append that does not complete the upload has Upload-Complete: ?0.",
            covers: "APP-02 VER-20",
            needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let response = try t.appending(t.newUpload(), at: 0, complete: false, .bytes(t.bytes(t.partSize)))
            try t.expectSuccess(response, "to an append")
            try t.expect(t.profile.isComplete(response) == false, "Upload-Complete: ?0", response.summary)
        },
        Case(
            "4.4/chunked", .must, "9", "A chunked append adds the content of its chunks.", covers: "APP-01 STF-09",
            needs: ["4.4/append"]
        ) { t in
            let upload = try t.newUpload()
            let content = t.bytes(t.partSize * 2)
            let chunks = Request.Content.chunks([Array(content[..<1]), Array(content[1...])])
            try t.expectSuccess(t.appending(upload, at: 0, complete: false, chunks), "to a chunked append")
            try t.expectState(of: upload, offset: Int64(t.partSize * 2))
        },
        Case(
            "4.4/finish", .must, "4.4.2",
            "An append that completes the upload succeeds, and the file has all bytes of the upload.",
            covers: "APP-03 CRE-19 CMP-02", needs: ["4.4/append"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(t.partSize)
            let remaining = t.bytes(t.partSize, from: t.partSize)
            let response = try t.appending(upload, at: Int64(t.partSize), complete: true, .bytes(remaining))
            try t.expectSuccess(response, "from the target")
            try t.expect(
                t.profile.isComplete(response) != false, "no \(t.profile.completenessLine(false)) in the response",
                response.summary)
            try t.expectFile(of: response, to: request, t.bytes(t.partSize * 2))
        },
    ]

    static let all: [Case] = [
        Case(
            "4.4/states-complete", .must, "4.4.2",
            "The response to an append that completes the upload has Upload-Complete: ?1.",
            covers: "APP-03 VER-20", needs: ["4.4/finish"], ranks: Profile.explicitRanks
        ) { t in
            let response = try t.appending(t.newUpload(), at: 0, complete: true, .bytes(t.bytes(t.partSize)))
            try t.expect(t.profile.isComplete(response) == true, "Upload-Complete: ?1", response.summary)
        },
        Case(
            "4.4/same-response", .should, "4.4.2",
            "The response to the last append equals the response to an upload in one request.", covers: "APP-04",
            needs: ["4.4/finish"]
        ) { t in
            let once = try t.setup { try t.exchange(t.creation(complete: true, .bytes(t.bytes(t.partSize)))) }
            let upload = try t.newUpload()
            let parts = try t.appending(upload, at: 0, complete: true, .bytes(t.bytes(t.partSize)))
            try t.expect(
                parts.status == once.status, "\(once.status), as for an upload in one request", parts.summary)
            try t.expect(
                parts.fields["Content-Type"] == once.fields["Content-Type"],
                "Content-Type \(once.fields["Content-Type"] ?? "absent"), as for an upload in one request",
                parts.summary)
        },
        Case(
            "4.4/finish-empty", .must, "4.4.1", "An append without content can complete an upload.", covers: "APP-09",
            needs: ["4.4/finish"]
        ) { t in
            for content in [Request.Content.bytes([]), .none] {
                let (upload, request) = try t.newUploadWithRequest(t.partSize)
                let response = try t.appending(upload, at: Int64(t.partSize), complete: true, content)
                try t.expectSuccess(response, "from the target")
                try t.expect(
                    t.profile.isComplete(response) != false, "no \(t.profile.completenessLine(false)) in the response",
                    response.summary)
                try t.expectFile(of: response, to: request, t.bytes(t.partSize))
            }
        },
        Case(
            "4.4/empty", .must, "4.4.1", "An append without content that does not complete the upload changes nothing.",
            covers: "APP-10", needs: ["4.4/append"]
        ) { t in
            if t.subject.limits["min-append-size", default: 0] > 0 { throw t.skip("there is a min-append-size") }
            let upload = try t.newUpload(t.partSize)
            try t.expectSuccess(
                t.appending(upload, at: Int64(t.partSize), complete: false, .bytes([])), "to an empty append")
            try t.expectState(of: upload, offset: Int64(t.partSize))
        },
        Case(
            "4.4/many-parts", .must, "4.4.2", "An upload in many parts results in one representation.",
            covers: "CRE-19 APP-08", needs: ["4.4/finish"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(t.partSize)
            let count = 12
            for index in 1..<count {
                let content = Request.Content.bytes(t.bytes(t.partSize, from: index * t.partSize))
                let isLast = index == count - 1
                let response = try t.appending(upload, at: Int64(index * t.partSize), complete: isLast, content)
                try t.expectSuccess(response, "to part \(index)")
                if isLast { try t.expectFile(of: response, to: request, t.bytes(t.partSize * count)) }
            }
        },
        Case(
            "4.4/offset-mismatch", .must, "4.4.2", "An append at a wrong offset gets 409.",
            covers: "APP-05", needs: ["4.2/create-part"]
        ) { t in
            for response in try t.mismatches() {
                try t.expect(response, isOneOf: [409], "to an append at a wrong offset")
            }
        },
        Case(
            "4.4/mismatch-offset", .must, "4.4.2", "A 409 to a wrong offset reports the offset of the upload.",
            covers: "APP-06 VER-10 VER-21", needs: ["4.4/offset-mismatch"]
        ) { t in
            for response in try t.mismatches() {
                try t.expect(
                    response.integer("Upload-Offset") == Int64(t.partSize), "Upload-Offset: \(t.partSize)",
                    response.summary)
            }
        },
        Case(
            "4.4/mismatch-incomplete", .must, "4.4.2", "A 409 to a wrong offset has Upload-Complete: ?0.",
            covers: "APP-07 VER-21", needs: ["4.4/offset-mismatch"], ranks: Profile.explicitRanks
        ) { t in
            for response in try t.mismatches() {
                try t.expect(t.profile.isComplete(response) == false, "Upload-Complete: ?0", response.summary)
            }
        },
        Case(
            "4.4/mismatch-changes-nothing", .must, "4.4.2",
            "An append at a wrong offset changes nothing: the upload can be continued.",
            covers: "APP-08", needs: ["4.4/offset-mismatch", "4.4/finish"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(t.partSize)
            let wrong = Request.Content.bytes([UInt8](repeating: UInt8(ascii: "!"), count: t.partSize))
            for offset in [0, Int64(t.partSize) + 1] { _ = try t.appending(upload, at: offset, complete: false, wrong) }
            try t.expectState(of: upload, offset: Int64(t.partSize))
            let remaining = t.bytes(t.partSize, from: t.partSize)
            let response = try t.appending(upload, at: Int64(t.partSize), complete: true, .bytes(remaining))
            try t.expectSuccess(response, "to an append at the offset")
            try t.expectFile(of: response, to: request, t.bytes(t.partSize * 2))
        },
        Case(
            "4.4/interrupted-not-complete", .must, "4.4.2",
            "An interrupted append with ?1 does not complete the upload.",
            covers: "APP-14 H11-13", needs: ["4.4/append"]
        ) { t in
            let (connection, upload) = try t.interruptedAppend(sending: t.partSize * 2, of: t.partSize * 3)
            _ = try? connection.awaitEnding()
            let state = try t.state(of: upload)
            try t.expect(state.isComplete == false, "an incomplete upload", state.response.summary)
            try t.expect(state.offset <= t.partSize * 3, "an offset of \(t.partSize * 3) at most", "\(state.offset)")
        },
        Case(
            "4.4/interrupted-keeps-prefix", .should, "4.4.2",
            "The bytes of an interrupted append that arrived are kept.",
            covers: "APP-13", needs: ["4.4/interrupted-not-complete"]
        ) { t in
            let (connection, upload) = try t.interruptedAppend(sending: t.partSize * 2, of: t.partSize * 3)
            // An offset retrieval may end the append before the server has read all bytes that arrived.
            _ = try? connection.awaitEnding()
            let offset = try t.state(of: upload).offset
            try t.expect(
                offset > t.partSize && offset <= t.partSize * 3, "an offset in \(t.partSize + 1)…\(t.partSize * 3)",
                "\(offset)")
        },
        Case(
            "4.4/interrupted-chunked", .must, "RFC 9112 8",
            "A chunked append without its last chunk does not complete the upload.",
            covers: "H11-12", needs: ["4.4/chunked"]
        ) { t in
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            try t.begin(t.append(upload, at: 0, complete: true, .openChunks), on: connection)
            try connection.send(Request.chunk(t.bytes(t.partSize)))
            connection.endOutput()
            _ = try? connection.awaitEnding()
            let state = try t.state(of: upload)
            try t.expect(state.isComplete == false, "an incomplete upload", state.response.summary)
            try t.expect(state.offset <= t.partSize, "an offset of \(t.partSize) at most", "\(state.offset)")
        },
        Case(
            "4.4/media-type", .should, "4.4.1", "An append with a wrong media type gets 415 with Accept-Patch.",
            covers: "APP-17 VER-09", needs: ["4.4/append"], ranks: 6...9
        ) { t in
            for (type, response) in try t.appendsOfOtherMediaTypes().responses {
                try t.expect(response, isOneOf: [415], "to \(type)")
                try t.expect(
                    response.list("Accept-Patch").contains("application/partial-upload"),
                    "Accept-Patch: application/partial-upload", response.fields["Accept-Patch"] ?? "none")
            }
        },
        Case(
            "4.4/media-type-refused", .must, "4.4.1",
            "An append with a wrong media type is refused and changes nothing.",
            covers: "VER-09", needs: ["4.4/append"], ranks: 6...9
        ) { t in
            let (upload, responses) = try t.appendsOfOtherMediaTypes()
            for (type, response) in responses { try t.expectRefusal(response, "to \(type)") }
            try t.expectState(of: upload, offset: 0)
        },
        Case(
            "4.4/media-type-spelling", .must, "RFC 9110 8.3.1",
            "The media type is compared without regard to case and parameters.", covers: "APP-18",
            needs: ["4.4/append"],
            ranks: 6...9
        ) { t in
            for type in [
                "Application/Partial-Upload; x=y", "APPLICATION/PARTIAL-UPLOAD",
                "application/partial-upload ; a=\"b;c\"",
            ] {
                let upload = try t.newUpload()
                let request = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize)))
                    .replacing("Content-Type", by: type)
                try t.expectSuccess(t.exchange(request, with: upload), "to \(type)")
            }
        },
        Case(
            "4.4/no-media-type", .must, "draft -01 to -03",
            "Up to interop version 5 an append may have any media type, or none.",
            covers: "VER-08", needs: ["4.4/append"], ranks: 3...5
        ) { t in
            for type in [nil, "application/offset+octet-stream", "text/plain"] {
                let upload = try t.newUpload()
                var request = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize)))
                if let type { request = request.with("Content-Type", type) }
                try t.expectSuccess(t.exchange(request, with: upload), "to an append with \(type ?? "no media type")")
            }
        },
        Case(
            "4.4/content-encoding", .should, "8", "An append with Content-Encoding is refused.", covers: "APP-22",
            needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload()
            let request = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize)))
                .with("Content-Encoding", "gzip")
            try t.expectRefusal(t.exchange(request, with: upload), "to Content-Encoding: gzip")
            try t.expectState(of: upload, offset: 0)
        },
        Case(
            "4.4/unknown", .must, "4.4", "An append to an unknown upload is refused.", covers: "APP-24",
            needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.unknownUpload()
            let response = try t.appending(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize)))
            try t.expectRefusal(response, "to an append to an unknown upload")
        },
        Case(
            "4.4/other-methods", .should, "RFC 9110 15.5.6",
            "An unsupported method on an upload resource gets 405 with Allow.", covers: "APP-27",
            needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.newUpload()
            for method in ["POST", "PUT"] {
                let request = Request(
                    method, upload.endpoint.target, t.profile.versionFields + t.subject.extraFields, .bytes([]))
                let response = try t.exchange(request, with: upload)
                try t.expect(response, isOneOf: [405], "to \(method) of an upload resource")
                try t.expect(
                    response.list("Allow").contains("patch"), "Allow with PATCH", response.fields["Allow"] ?? "none")
            }
        },
    ]
}

extension CaseContext {
    func newUploadWithRequest(_ count: Int) throws -> (Upload, Request) {
        try setup {
            let request = creation(complete: false, .bytes(bytes(count)))
            let response = try exchange(request)
            try expectSuccess(response, "to a creation with ?0")
            return (try upload(from: response, to: request), request)
        }
    }

    /// Sends appends with wrong media types to an empty upload.
    func appendsOfOtherMediaTypes() throws -> (upload: Upload, responses: [(type: String, response: Response)]) {
        let upload = try newUpload()
        let append = append(upload, at: 0, complete: false, .bytes(bytes(partSize))).without("Content-Type")
        let types = [nil, "application/octet-stream", "text/plain", "application/partial-uploads"]
        let responses = try types.map { type in
            let request = type.map { append.with("Content-Type", $0) } ?? append
            return (type ?? "no media type", try exchange(request, with: upload))
        }
        return (upload, responses)
    }

    /// Creates an upload at offset ``partSize``, and sends appends at lower and higher offsets.
    func mismatches() throws -> [Response] {
        let upload = try newUpload(partSize)
        let offsets = [
            (Int64(partSize) - 1, false), (Int64(partSize) + 1, true), (0, false), (999_999_999_999_999, true),
        ]
        return try offsets.map { offset, isComplete in
            try appending(upload, at: offset, complete: isComplete, .bytes(bytes(partSize)))
        }
    }

    /// Creates an upload at offset ``partSize``, and interrupts an append to it that would complete it.
    func interruptedAppend(
        sending count: Int, of total: Int
    ) throws -> (connection: RawConnection, upload: Upload) {
        let upload = try newUpload(partSize)
        return try setup {
            let connection = try connect(to: upload.endpoint)
            try begin(append(upload, at: Int64(partSize), complete: true, .declared(Int64(total))), on: connection)
            try connection.send(bytes(count, from: partSize))
            connection.endOutput()
            return (connection, upload)
        }
    }
}
