/// RFC 9651: a field of the draft with an invalid value counts as absent.
enum FieldSyntaxCases {
    static let all: [Case] = [
        Case(
            "9651/offset-forms", .must, "RFC 9651 4.2", "Leading zeros and parameters of Upload-Offset are ignored.",
            covers: "STF-01", needs: ["4.4/append"]
        ) { t in
            let padded = String(repeating: "0", count: 15 - "\(t.partSize)".count) + "\(t.partSize)"
            for value in [
                "0\(t.partSize)", padded, "\(t.partSize);a=b", "\(t.partSize);x", "\(t.partSize);a=\"x, y\";b=:AA==:",
                "  \(t.partSize)",
            ] {
                let upload = try t.newUpload(t.partSize)
                let response = try t.exchange(t.append(upload, offsetValue: value), with: upload)
                try t.expectSuccess(response, "to Upload-Offset: \(value)")
            }
            for value in ["-0", "00", "000000000000000"] {
                let upload = try t.newUpload()
                try t.expectSuccess(
                    t.exchange(t.append(upload, offsetValue: value), with: upload), "to Upload-Offset: \(value)")
            }
        },
        Case(
            "9651/offset-plus", .must, "RFC 9651 4.2.4", "An Upload-Offset with a plus sign counts as absent.",
            covers: "STF-02",
            needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in try t.expectNothingAppended(offsetValue: ["+\(t.partSize)"]) },
        Case(
            "9651/offset-types", .must, "4.1.1", "An Upload-Offset of a type other than Integer counts as absent.",
            covers: "STF-03 APP-15",
            needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let n = t.partSize
            try t.expectNothingAppended(
                offsetValue: [
                    "\(n).0", "\"\(n)\"", "?1", "ten", ":NQ==:", "@\(n)", "(\(n))", "\(n)x", "0x\(n)", "%\"\(n)\"",
                ])
        },
        Case(
            "9651/offset-broken", .must, "RFC 9651 4.2",
            "An Upload-Offset that cannot be parsed to its end counts as absent.",
            covers: "STF-03 APP-15", needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let n = t.partSize
            try t.expectNothingAppended(offsetValue: ["\(n) \(n)", "\(n);", "\(n);A=1", "", "\(n) ;", "\(n),"])
        },
        Case(
            "9651/offset-negative", .must, "4.1.1", "A negative Upload-Offset counts as absent.", covers: "STF-04",
            needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in try t.expectNothingAppended(offsetValue: ["-\(t.partSize)", "-1"]) },
        Case(
            "9651/offset-digits", .must, "RFC 9651 3.3.1",
            "An Upload-Offset of 16 digits counts as absent, one of 15 digits gets 409.",
            covers: "STF-05 APP-25", needs: ["4.4/offset-mismatch"], ranks: Profile.explicitRanks
        ) { t in
            let zeros = String(repeating: "0", count: 16 - "\(t.partSize)".count)
            try t.expectNothingAppended(offsetValue: ["1000000000000000", zeros + "\(t.partSize)"])
            let upload = try t.newUpload(t.partSize)
            let response = try t.exchange(t.append(upload, offsetValue: "999999999999999"), with: upload)
            try t.expect(response, isOneOf: [409], "to Upload-Offset: 999999999999999")
        },
        Case(
            "9651/offset-repeated", .must, "RFC 9651 4.2",
            "An Upload-Offset on two lines or with two values counts as absent.",
            covers: "STF-06", needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            try t.expectNothingAppended(offsetValue: ["\(t.partSize), \(t.partSize)"])
            let upload = try t.newUpload(t.partSize)
            let request = t.append(upload, offsetValue: "\(t.partSize)").with("Upload-Offset", "\(t.partSize)")
            try t.expectRefusal(t.exchange(request, with: upload), "to Upload-Offset on two lines")
            try t.expectState(of: upload, offset: Int64(t.partSize))
        },
        Case(
            "9651/offset-status", .should, "4.4.1", "An append without a valid Upload-Offset gets 400.",
            covers: "APP-15",
            needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let n = t.partSize
            for value in [
                nil, "", "+\(n)", "\(n).0", "\"\(n)\"", "?1", "five", ":NQ==:", "@\(n)", "-\(n)", "1000000000000000",
                "\(n), \(n)", "\(n);", "\(n);A=1", "0x\(n)", "\(n) \(n)", "\(n),",
            ] {
                let upload = try t.newUpload(t.partSize)
                var request = t.append(upload, offsetValue: value ?? "").without("Upload-Offset")
                if let value { request = request.with("Upload-Offset", value) }
                let response = try t.exchange(request, with: upload)
                try t.expect(response, isOneOf: [400], "to Upload-Offset: \(value ?? "(absent)")")
                try t.expectState(of: upload, offset: Int64(t.partSize))
            }
        },
        Case(
            "9651/complete-forms", .must, "4.1.2", "Parameters of Upload-Complete are ignored.", covers: "STF-07",
            needs: ["4.4/finish"], ranks: 4...9
        ) { t in
            for value in ["?1;p=2", "?1;x", "?1;a=\"b, c\"", "  ?1"] {
                let upload = try t.newUpload(t.partSize)
                let request = t.append(upload, at: Int64(t.partSize), complete: true, .bytes([]))
                    .replacing("Upload-Complete", by: value)
                let response = try t.exchange(request, with: upload)
                try t.expectSuccess(response, "to Upload-Complete: \(value)")
                try t.expect(
                    t.profile.isComplete(response) != false, "no \(t.profile.completenessLine(false)) in the response",
                    response.summary)
            }
        },
        Case(
            "9651/complete-near-misses", .must, "4.1.2",
            "An Upload-Complete that is not a Boolean does not complete an upload.",
            covers: "STF-07 CRE-10 VER-07", needs: ["4.4/append"], ranks: 4...9
        ) { t in
            for value in ["1", "true", "?2", "?T", "? 1", "\"?1\"", "", "?1, ?1"] {
                let upload = try t.newUpload(t.partSize)
                let request = t.append(upload, at: Int64(t.partSize), complete: true, .bytes([]))
                    .replacing("Upload-Complete", by: value)
                let response = try t.exchange(request, with: upload)
                try t.expect(
                    t.profile.isComplete(response) != true,
                    "no Upload-Complete: ?1 in the response to Upload-Complete: \(value)", response.summary)
                try t.expectState(of: upload, offset: Int64(t.partSize))
            }
        },
        Case(
            "9651/complete-status", .should, "4.4.1", "An append without a valid Upload-Complete gets 400.",
            covers: "APP-16", needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
            let append = t.append(upload, at: Int64(t.partSize), complete: nil, content)
            for value in [nil, "1", "true", "?2", ""] {
                let request = value.map { append.with("Upload-Complete", $0) } ?? append
                let response = try t.exchange(request, with: upload)
                try t.expect(response, isOneOf: [400], "to Upload-Complete: \(value ?? "(absent)")")
                try t.expectState(of: upload, offset: Int64(t.partSize))
            }
        },
        Case(
            "9651/creation-near-misses", .must, "4.1.2",
            "A creation whose Upload-Complete is not a Boolean is a plain request: it gets no 104.",
            covers: "CRE-10 STF-07",
            needs: ["4.2/plain"], ranks: 4...9
        ) { t in
            for value in ["1", "true", "?2", "?T", "? 1", "", "\"?1\"", "?1, ?1"] {
                let content = t.bytes(t.partSize)
                let request = t.creation(complete: true, .bytes(content)).replacing("Upload-Complete", by: value)
                let response = try t.exchange(request)
                try t.expect(
                    response.announcements.isEmpty, "no 104 to Upload-Complete: \(value)",
                    response.announcements.first?.summary ?? "")
                if response.isSuccessful { try t.expectFile(of: response, to: request, content) }
            }
        },
        Case(
            "9651/trailers", .must, "RFC 9110 6.5.1", "Fields of the draft in a trailer section are ignored.",
            covers: "STF-09", needs: ["4.4/chunked"]
        ) { t in
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let request = t.append(upload, at: 0, complete: false, .openChunks)
                .with("Trailer", t.profile.completenessName)
            t.setLastRequest(request, upload.endpoint)
            try connection.send(request)
            try connection.send(Request.chunk(t.bytes(t.partSize)))
            let (name, value) = t.profile.completeness(true)
            let trailers = "\(name): \(value)\r\nUpload-Offset: 7\r\nUpload-Length: \(t.partSize)\r\n"
            try connection.send(Array("0\r\n\(trailers)\r\n".utf8))
            let response = try connection.readResponse()
            try t.expect(
                t.profile.isComplete(response) != true, "no \(t.profile.completenessLine(true)) in the response",
                response.summary)
            let head = try t.exchange(t.retrieval(upload), with: upload)
            try t.expect(t.profile.isComplete(head) != true, "an incomplete upload", head.summary)
            try t.expect(!head.fields.contains("Upload-Length"), "no Upload-Length", head.summary)
            if response.isSuccessful {
                try t.expect(
                    head.integer("Upload-Offset") == Int64(t.partSize), "Upload-Offset: \(t.partSize)", head.summary)
            }
        },
        Case(
            "9651/names", .must, "RFC 9110 5.1", "Field names are compared without regard to case.", covers: "STF-11",
            needs: ["4.4/append"]
        ) { t in
            for isUpper in [true, false] {
                let upload = try t.newUpload()
                var request = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize)))
                request.fields = request.fields.map { (isUpper ? $0.0.uppercased() : $0.0.lowercased(), $0.1) }
                try t.expectSuccess(
                    t.exchange(request, with: upload), "to field names in \(isUpper ? "upper" : "lower") case")
            }
        },
    ]
}

extension CaseContext {
    /// Returns an append of ``partSize`` bytes with this value of Upload-Offset.
    func append(_ upload: Upload, offsetValue value: String) -> Request {
        append(upload, at: 0, complete: false, .bytes(bytes(partSize, from: partSize)))
            .replacing("Upload-Offset", by: value)
    }

    /// Expects that an upload at offset ``partSize`` refuses appends with any of these values of Upload-Offset.
    func expectNothingAppended(offsetValue values: [String]) throws {
        let upload = try newUpload(partSize)
        for value in values {
            try expectRefusal(
                exchange(append(upload, offsetValue: value), with: upload),
                "to Upload-Offset: \(value.isEmpty ? "(empty)" : value)")
            try expectState(of: upload, offset: Int64(partSize))
        }
    }
}
