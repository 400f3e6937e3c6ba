/// Section 4.2: how an upload begins.
enum CreationCases {
    /// What most other cases need.
    static let basic: [Case] = [
        Case(
            "4.2/create-empty", .must, "4.2.2",
            "A creation without content that is not complete makes an upload resource at offset 0.",
            covers: "CRE-04 CRE-14 OFF-01 OFF-02 LIM-08"
        ) { t in
            let request = t.creation(complete: false, .bytes([]))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "to a creation with ?0")
            _ = try t.require(response.location, "one Location of the upload resource", response.summary)
            try t.expectState(of: t.upload(from: response, to: request), offset: 0)
        },
        Case(
            "4.2/create-part", .must, "4.2.2",
            "The content of a creation that is not complete is the upload's beginning.", covers: "CRE-04 OFF-01",
            needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.newUpload(t.part)
            try t.expectState(of: upload, offset: Int64(t.part))
        },
        Case(
            "4.2/created", .should, "4.2.2", "A creation that is not complete is answered by 201.",
            covers: "CRE-06", needs: ["4.2/create-empty"]
        ) { t in
            try t.expect(t.exchange(t.creation(complete: false, .bytes([]))), isOneOf: [201], "to a creation with ?0")
        },
        Case(
            "4.2/part-states-incomplete", .should, "4.2.2",
            "The response to a creation that is not complete says so.", covers: "CRE-07", needs: ["4.2/create-empty"]
        ) { t in
            let response = try t.exchange(t.creation(complete: false, .bytes(t.bytes(t.part))))
            try t.expect(
                t.profile.isComplete(response) == false, "\(t.profile.completeness(false))", response.summary)
        },
        Case(
            "4.2/part-limits", .must, "4.2.2",
            "Where there are limits the response to a creation that is not complete reports them.", covers: "CRE-05",
            needs: ["4.2/create-empty"], ranks: 8...9
        ) { t in
            try t.requireLimits()
            let response = try t.exchange(t.creation(complete: false, .bytes([])))
            _ = try t.require(response.limits, "Upload-Limit", response.summary)
        },
        Case(
            "4.2/whole", .must, "4.2.2", "A creation with the whole representation is an upload in one request.",
            covers: "CRE-19"
        ) { t in
            let content = t.bytes(t.part)
            let request = t.creation(complete: true, .bytes(content))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "of the target")
            try t.expectFile(of: response, to: request, content)
        },
    ]

    static let all: [Case] = [
        Case(
            "4.2/whole-states-complete", .should, "4.2.2",
            "The response of the target to a whole representation is marked as complete.", covers: "CRE-07 CRE-12",
            needs: ["4.2/whole"], ranks: Profile.explicitRanks
        ) { t in
            let response = try t.exchange(t.creation(complete: true, .bytes(t.bytes(t.part))))
            try t.expect(t.profile.isComplete(response) == true, "Upload-Complete: ?1", response.summary)
        },
        Case(
            "4.2/empty-whole", .must, "4.2.1", "A representation without bytes is created and complete at once.",
            covers: "CRE-13", needs: ["4.2/whole"]
        ) { t in
            let request = t.creation(complete: true, .bytes([]))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "of the target")
            try t.expect(t.profile.isComplete(response) != false, "no ?0 in the final response", response.summary)
            try t.expectFile(of: response, to: request, [])
        },
        Case(
            "4.2/chunked-whole", .must, "9", "A chunked creation is complete with its last chunk.",
            covers: "CRE-29", needs: ["4.2/whole"]
        ) { t in
            let content = t.bytes(t.part * 3)
            let chunks = [Array(content[..<1]), Array(content[1..<t.part]), Array(content[t.part...])]
            let request = t.creation(complete: true, .chunks(chunks))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "of the target")
            try t.expect(t.profile.isComplete(response) != false, "no ?0 in the final response", response.summary)
            try t.expectFile(of: response, to: request, content)
        },
        Case(
            "4.2/chunked-part", .must, "9", "A chunked creation that is not complete keeps all of its content.",
            covers: "OFF-04 CRE-04", needs: ["4.2/create-part"]
        ) { t in
            let content = t.bytes(t.part * 2)
            let request = t.creation(complete: false, .chunks([Array(content[..<t.part]), Array(content[t.part...])]))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "to a chunked creation with ?0")
            try t.expectState(of: t.upload(from: response, to: request), offset: Int64(t.part * 2))
        },
        Case(
            "4.2/plain", .must, "4.2", "A request that does not state completeness is a plain one: no 104.",
            covers: "CRE-09 CRE-20", needs: ["4.2/whole"]
        ) { t in
            let content = t.bytes(t.part)
            let request = t.creation(complete: nil, .bytes(content))
            let response = try t.exchange(request)
            try t.expect(response.announcements.isEmpty, "no 104", "\(response.announcements.count) of them")
            try t.expect(
                t.profile.isComplete(response) != false, "no Upload-Complete: ?0 in the response", response.summary)
            if response.isSuccessful { try t.expectFile(of: response, to: request, content) }
        },
        Case(
            "4.2/distinct", .must, "4", "Two creations make two uploads that know nothing of each other.",
            covers: "CRE-24 CON-10", needs: ["4.2/create-part"]
        ) { t in
            let first = try t.newUpload(t.part)
            let second = try t.newUpload(t.part * 2)
            try t.expect(first.endpoint != second.endpoint, "two Locations", first.location)
            try t.expectState(of: first, offset: Int64(t.part))
            try t.expectState(of: second, offset: Int64(t.part * 2))
        },
        Case(
            "4.2/interrupted-not-complete", .must, "4.2.2",
            "A creation whose content ends too early never becomes complete, and its offset reports no byte too many.",
            covers: "CRE-16 H11-13", needs: ["4.2/announcement"]
        ) { t in
            let (connection, upload, _) = try t.announcedUpload(sending: t.part, of: t.part * 3)
            connection.endOutput()
            _ = try? connection.awaitEnding()
            let state = try t.state(of: upload)
            try t.expect(state.isComplete == false, "the upload not complete", state.response.summary)
            try t.expect(state.offset <= t.part, "Upload-Offset: \(t.part) at most", "\(state.offset)")
        },
        Case(
            "4.2/interrupted-keeps-prefix", .should, "4.2.2",
            "What arrived of a creation before the client ended its side is kept.", covers: "CRE-15",
            needs: ["4.2/interrupted-not-complete"]
        ) { t in
            let (connection, upload, _) = try t.announcedUpload(sending: t.part * 2, of: t.part * 3)
            connection.endOutput()
            // A retrieval may end the creation before it has read all that arrived.
            _ = try? connection.awaitEnding()
            let offset = try t.state(of: upload).offset
            try t.expect(offset > 0 && offset <= t.part * 2, "an offset in 1…\(t.part * 2)", "\(offset)")
        },
        Case(
            "4.2/reset-not-complete", .must, "4.2.2", "A creation whose connection is reset never becomes complete.",
            covers: "CRE-16", needs: ["4.2/announcement"]
        ) { t in
            let (connection, upload, _) = try t.announcedUpload(sending: t.part, of: t.part * 3)
            connection.reset()
            let state = try t.state(of: upload)
            try t.expect(state.isComplete == false, "the upload not complete", state.response.summary)
            try t.expect(state.offset <= t.part, "Upload-Offset: \(t.part) at most", "\(state.offset)")
        },
        Case(
            "4.2/interrupted-continues", .must, "4.2.2", "An interrupted creation can be finished by an append.",
            covers: "CRE-23 APP-08", needs: ["4.2/interrupted-not-complete", "4.4/append"]
        ) { t in
            let total = t.part * 3
            let (connection, upload, request) = try t.announcedUpload(sending: t.part, of: total)
            connection.endOutput()
            let offset = try t.state(of: upload).offset
            let remaining = t.bytes(total - Int(offset), from: Int(offset))
            let response = try t.appending(upload, at: offset, complete: true, .bytes(remaining))
            try t.expectSuccess(response, "to the append of the remainder")
            try t.expectFile(of: response, to: request, t.bytes(total))
        },
        Case(
            "4.2/length-recorded", .must, "4.2.2", "The length that a creation states is remembered.",
            covers: "CRE-17 OFF-03 VER-26", needs: ["4.2/create-part"], ranks: 6...9
        ) { t in
            let upload = try t.newUpload(t.part, length: t.part * 4)
            let response = try t.state(of: upload).response
            try t.expect(
                response.integer("Upload-Length") == Int64(t.part * 4), "Upload-Length: \(t.part * 4)",
                response.summary)
        },
        Case(
            "4.2/length-derived", .must, "4.2.2",
            "The Content-Length of a whole representation is its length, also when its content was cut off.",
            covers: "CRE-18 OFF-03", needs: ["4.2/interrupted-not-complete"], ranks: Profile.explicitRanks
        ) { t in
            let (connection, upload, _) = try t.announcedUpload(sending: t.part, of: t.part * 3)
            connection.endOutput()
            let response = try t.state(of: upload).response
            try t.expect(
                response.integer("Upload-Length") == Int64(t.part * 3), "Upload-Length: \(t.part * 3)",
                response.summary)
        },
        Case(
            "4.2/offset-ignored", .should, "4.2.1", "Upload-Offset means nothing in a creation.", covers: "CRE-28",
            needs: ["4.2/create-part"], ranks: Profile.explicitRanks
        ) { t in
            let request = t.creation(complete: false, .bytes(t.bytes(t.part))).with("Upload-Offset", "7")
            let response = try t.exchange(request)
            try t.expectSuccess(response, "to a creation with Upload-Offset")
            try t.expectState(of: t.upload(from: response, to: request), offset: Int64(t.part))
        },
        Case(
            "4.2/location-resolves", .should, "RFC 9110 10.2.2",
            "Location is a URI reference that leads to the upload resource from the request's URL.",
            covers: "CRE-27", needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.newUpload()
            try t.expect(
                upload.location.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a URI reference", upload.location)
            try t.expect(
                upload.endpoint.address == t.subject.endpoint.address, "a Location at the same place",
                upload.location)
        },
        Case(
            "4.2/other-method", .info, "4.2.1", "Creations by another method than the one asked for.",
            covers: "CRE-08", needs: ["4.2/create-empty"]
        ) { t in
            for method in ["POST", "PUT", "PATCH"] where method != t.subject.method {
                var request = t.creation(complete: false, .bytes([]))
                request.method = method
                let response = try t.exchange(request)
                if response.isSuccessful, response.location != nil { _ = try t.upload(from: response, to: request) }
                t.note("\(method): \(response.summary)")
            }
        },
    ]
}

extension CaseContext {
    /// Where the subject has no limit, there is none to report.
    func requireLimits() throws {
        if subject.limits.allSatisfy({ $0.key == "min-size" && $0.value == 0 }) { throw skip("there are no limits") }
    }

    /// The finished file has this content, where it can be read at all.
    func expectFile(of response: Response, to request: Request, _ content: [UInt8]) throws {
        guard subject.allows(content.count), let place = subject.place(of: response, to: request, in: profile)
        else { return }
        let file = try download(place)
        try expect(file.status == 200, "200 to GET of the finished file", file.summary)
        try expect(
            file.contentSize == content.count && file.content[...] == content.prefix(RawConnection.Bounds.keptContent),
            "a file of the \(content.count) bytes sent",
            "\(file.contentSize) bytes, the first other one at \(file.firstDifference(from: content))")
    }
}

extension Response {
    func firstDifference(from other: [UInt8]) -> Int {
        zip(content, other).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            ?? min(content.count, other.count)
    }
}
