/// Sections 4.2.2, 4.4.2 and 5: interim responses.
enum InterimCases {
    static let announcement: [Case] = [
        Case(
            "4.2/announcement", .should, "4.2.2", "A creation gets a 104 before its content is sent.",
            covers: "CRE-01"
        ) { t in
            let connection = try t.connect()
            let request = t.creation(complete: true, .declared(Int64(t.partSize)))
            t.setLastRequest(request, connection.endpoint)
            try connection.send(request)
            let interim = try t.awaitAnnouncement(on: connection)
            _ = try? t.upload(at: interim.location, of: request, interim.summary)
        },
        Case(
            "4.2/announcement-location", .must, "4.2.2", "The first 104 of a creation has one Location.",
            covers: "CRE-02", needs: ["4.2/announcement"]
        ) { t in
            let interim = try t.announcement()
            try t.expect(interim.fields.values("Location").count == 1, "one Location", interim.summary)
            _ = try t.require(interim.location, "a Location with a value", interim.summary)
        },
        Case(
            "4.2/announcement-limits", .must, "4.2.2", "If there are limits, the announcing 104 has Upload-Limit.",
            covers: "CRE-03", needs: ["4.2/announcement"], ranks: 8...9
        ) { t in
            try t.requireLimits()
            let interim = try t.announcement()
            _ = try t.require(interim.limits, "Upload-Limit", interim.summary)
        },
        Case(
            "4.2/usable-at-once", .must, "4.2.2",
            "The offset of an upload can be retrieved as soon as a 104 has announced it.",
            covers: "CRE-26", needs: ["4.2/announcement"]
        ) { t in
            let (_, upload, _) = try t.announcedUpload(sending: 0, of: t.partSize)
            try t.expectState(of: upload, offset: 0)
        },
    ]

    static let versions: [Case] = [
        Case(
            "B/no-version", .must, "appendix B", "A request without an interop version gets no 104.",
            covers: "VER-01", needs: ["4.2/complete"], ranks: 3...8
        ) { t in
            let request = t.creation(complete: true, .bytes(t.bytes(t.partSize)))
                .without("Upload-Draft-Interop-Version")
            try t.expectUnannounced(request, "without a version")
        },
        Case(
            "B/unsupported-version", .must, "appendix B",
            "A request with an unknown interop version gets no 104, and is processed as a plain request.",
            covers: "VER-02", needs: ["4.2/complete"], ranks: 3...8
        ) { t in
            for version in ["99", "2", "0", "-\(t.profile.word)", "abc"] {
                let request = t.creation(complete: true, .bytes(t.bytes(t.partSize)))
                    .replacing("Upload-Draft-Interop-Version", by: version)
                try t.expectUnannounced(request, "to version \(version)")
            }
        },
        Case(
            "B/version-syntax", .must, "appendix B",
            "An interop version that is not a structured Integer counts as absent.",
            covers: "STF-10", needs: ["4.2/complete"], ranks: 3...8
        ) { t in
            let word = t.profile.word
            for version in [
                "\"\(word)\"", "\(word).0", "\(word),\(word)", "\(word), \(word)", "?1", "", "1000000000000000",
            ] {
                let request = t.creation(complete: true, .bytes(t.bytes(t.partSize)))
                    .replacing("Upload-Draft-Interop-Version", by: version)
                try t.expectUnannounced(request, "to version \(version)")
            }
        },
        Case(
            "B/version-parameters", .should, "appendix B",
            "Leading zeros and parameters of an interop version are ignored.",
            covers: "STF-10", needs: ["4.2/announcement"], ranks: 3...8
        ) { t in
            try t.requireAnnouncements()
            for version in ["0\(t.profile.word)", "\(t.profile.word);x", "\(t.profile.word);a=b"] {
                let request = t.creation(complete: true, .bytes(t.bytes(t.partSize)))
                    .replacing("Upload-Draft-Interop-Version", by: version)
                let response = try t.exchange(request)
                try t.expect(!response.announcements.isEmpty, "104 to version \(version)", response.summary)
            }
        },
        Case(
            "B/without-version", .should, "appendix B",
            "With the profile rfc a creation without an interop version gets a 104.",
            covers: "VER-04", needs: ["4.2/announcement"], ranks: 9...9
        ) { t in
            let interim = try t.announcement()
            try t.expect(
                !interim.fields.contains("Upload-Draft-Interop-Version"), "no version in the 104", interim.summary)
        },
    ]

    static let continuation: [Case] = [
        Case(
            "5/continue", .must, "5", "A client that waits for 100 gets it, even if a 104 is sent.",
            covers: "INT-01", needs: ["4.2/announcement"]
        ) { t in
            try t.requireAnnouncements()
            let connection = try t.connect()
            let content = t.bytes(t.partSize)
            let request = t.creation(complete: true, .declared(Int64(content.count)))
                .with("Expect", "100-continue")
            t.setLastRequest(request, connection.endpoint)
            try connection.send(request)
            var statuses: [Int] = []
            while !statuses.contains(100) {
                guard let interim = try? connection.readInterim() else { break }
                statuses.append(interim.status)
            }
            try t.expect(
                statuses.contains(100), "100 before any content", statuses.isEmpty ? "nothing" : "\(statuses)")
            try connection.send(content)
            try t.expectSuccess(connection.readResponse(), "from the target")
        },
        Case(
            "5/refusal-without-continue", .should, "RFC 9110 10.1.1",
            "A request that is refused because of its head gets the refusal without a 100.", covers: "INT-05",
            needs: ["4.4/offset-mismatch"]
        ) { t in
            let upload = try t.newUpload()
            let unknown = try t.unknownUpload()
            let content = Request.Content.declared(Int64(t.partSize))
            var requests = [
                (upload.endpoint, t.append(upload, at: 5, complete: false, content)),
                (unknown.endpoint, t.append(unknown, at: 0, complete: true, content)),
            ]
            if t.profile.hasLengthField {
                requests.append((t.subject.endpoint, t.creation(complete: true, length: t.partSize + 1, content)))
            }
            for (endpoint, request) in requests {
                let connection = try t.connect(to: endpoint)
                let request = request.with("Expect", "100-continue")
                t.setLastRequest(request, endpoint)
                try connection.send(request)
                let response = try connection.readResponse()
                try t.expectRefusal(response, "to a request that is invalid because of its head")
                try t.expect(!response.interim.contains { $0.status == 100 }, "no 100", "100 before \(response.status)")
            }
        },
        Case(
            "5/unknown-expectation", .info, "RFC 9110 10.1.1",
            "The response to an unknown expectation is recorded, without a verdict.",
            covers: "INT-09", needs: ["4.2/complete"]
        ) { t in
            let request = t.creation(complete: true, .bytes(t.bytes(t.partSize))).with("Expect", "the-unexpected")
            t.note(try t.exchange(request).summary)
        },
        Case(
            "5/http-1.0", .must, "RFC 9110 15.2", "A request with HTTP/1.0 gets no interim responses.",
            covers: "INT-02", needs: ["4.2/complete"]
        ) { t in
            var request = t.creation(complete: true, .bytes(t.bytes(t.partSize)))
            request.version = "HTTP/1.0"
            for request in [request, request.with("Expect", "100-continue")] {
                let response = try t.exchange(request)
                try t.expect(
                    response.interim.isEmpty, "no 1xx", "\(response.interim.map(\.status)) before \(response.status)")
            }
        },
        Case(
            "4.4/progress", .should, "4.4.2", "While an append is received, 104 responses report the offset.",
            covers: "APP-12", needs: ["4.4/append", "4.2/announcement"], ranks: 8...9
        ) { t in
            let (connection, _) = try t.slowAppend()
            let interim = try t.sendSlowContent(on: connection)
            _ = try t.require(
                interim, "a 104 with Upload-Offset while \(CaseContext.slowContent) bytes are sent in 2.4 s", "none")
        },
        Case(
            "4.4/progress-kept", .must, "4.1.1",
            "After a reset of the connection the offset is not lower than one that a 104 reported.",
            covers: "INT-08 OFF-10 CRE-21", needs: ["4.4/progress"], ranks: 8...9
        ) { t in
            let (connection, upload) = try t.slowAppend()
            guard let reported = try t.sendSlowContent(on: connection) else {
                throw t.skip("the server reports no progress")
            }
            connection.reset()
            let state = try t.state(of: upload)
            try t.expect(state.offset >= reported, "an offset of \(reported) or more", "\(state.offset)")
        },
        Case(
            "4.2/progress", .may, "4.2.2", "The offsets in the 104 responses to a creation never decrease.",
            covers: "CRE-21 VER-18", needs: ["4.2/announcement"], ranks: 5...9
        ) { t in
            guard t.subject.allows(CaseContext.slowContent + 1) else {
                throw t.skip("the limits of the server are too low for this case")
            }
            let (connection, upload, _) = try t.announcedUpload(sending: 0, of: CaseContext.slowContent + 1)
            guard let reported = try t.sendSlowContent(on: connection) else {
                throw t.skip("the server reports no progress")
            }
            let announcements = connection.interim.filter { $0.status == 104 }
            let offsets = announcements.compactMap { $0.integer("Upload-Offset") }
            try t.expect(offsets == offsets.sorted(), "rising offsets", "\(offsets)")
            if t.profile.rank <= 7 {
                try t.expect(
                    announcements.dropFirst().allSatisfy { !$0.fields.contains("Location") },
                    "Location only in the first 104",
                    announcements.last?.summary ?? "")
            }
            connection.reset()
            let offset = try t.state(of: upload).offset
            try t.expect(offset >= reported, "an offset of \(reported) or more", "\(offset)")
        },
        Case(
            "5/rate", .should, "4.4.2", "The number of 104 responses to an append is limited.", covers: "INT-07",
            needs: ["4.4/progress"], ranks: 8...9
        ) { t in
            let (connection, _) = try t.slowAppend()
            _ = try t.sendSlowContent(on: connection)
            try connection.send(t.bytes(1))
            let count = try connection.readResponse().announcements.count
            try t.expect(count <= 1000, "at most 1000 for \(CaseContext.slowContent) bytes", "\(count)")
        },
    ]
}

extension CaseContext {
    /// The size of content that is sent slowly. A server is expected to report progress while it receives the content.
    static let slowContent = 6 << 20

    /// Sends the head of a creation and returns the first 104.
    func announcement() throws -> InterimResponse {
        try requireAnnouncements()
        let connection = try connect()
        let request = creation(complete: true, .declared(Int64(partSize)))
        setLastRequest(request, connection.endpoint)
        try connection.send(request)
        let interim = try awaitAnnouncement(on: connection)
        _ = try? upload(at: interim.location, of: request, interim.summary)
        return interim
    }

    /// Expects a successful response without any 104.
    /// - Parameter situation: ends the texts of the expectations, such as "to version 99".
    func expectUnannounced(_ request: Request, _ situation: String) throws {
        let response = try exchange(request)
        try expect(response.announcements.isEmpty, "no 104 \(situation)", response.announcements.first?.summary ?? "")
        try expect(response.isSuccessful, "2xx from the target \(situation)", response.summary)
    }

    /// Sends the head of an append whose content has one byte more than ``slowContent``.
    func slowAppend() throws -> (connection: RawConnection, upload: Upload) {
        guard subject.allows(Self.slowContent + 1) else {
            throw skip("the limits of the server are too low for this case")
        }
        let upload = try newUpload()
        return try setup {
            let connection = try connect(to: upload.endpoint)
            let request = append(upload, at: 0, complete: false, .declared(Int64(Self.slowContent + 1)))
            setLastRequest(request, upload.endpoint)
            try connection.send(request)
            return (connection, upload)
        }
    }

    /// Sends ``slowContent`` bytes in 24 pieces, with a pause of 100 ms after each piece until a 104 reports an offset.
    /// - Returns: the highest offset that a 104 reports; `nil` if no 104 reports one.
    func sendSlowContent(on connection: RawConnection) throws -> Int64? {
        func reported() -> Int64? {
            connection.interim.filter { $0.status == 104 }.compactMap { $0.integer("Upload-Offset") }.max()
        }
        let piece = Self.slowContent / 24
        for index in 0..<24 {
            try connection.send(bytes(piece, from: index * piece))
            _ = try connection.awaitHead(within: .milliseconds(reported() == nil ? 100 : 1))
        }
        if reported() == nil { _ = try connection.awaitHead(within: .seconds(1)) }
        return reported()
    }
}
