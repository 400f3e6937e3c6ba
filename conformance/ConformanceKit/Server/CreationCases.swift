/// Section 4.2: creation of uploads.
enum CreationCases {
    /// The cases on which most others depend.
    static let basic: [Case] = [
        Case(
            "4.2/create-empty", .must, "4.2.2",
            "A creation with ?0 and without content creates an upload resource at offset 0.",
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
            "The content of a creation with ?0 is the beginning of the upload.", covers: "CRE-04 OFF-01",
            needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.newUpload(t.partSize)
            try t.expectState(of: upload, offset: Int64(t.partSize))
        },
        Case(
            "4.2/created", .should, "4.2.2", "A creation with ?0 gets 201.",
            covers: "CRE-06", needs: ["4.2/create-empty"]
        ) { t in
            try t.expect(t.exchange(t.creation(complete: false, .bytes([]))), isOneOf: [201], "to a creation with ?0")
        },
        Case(
            "4.2/part-states-incomplete", .should, "4.2.2",
            "The response to a creation that does not complete the upload states that it is incomplete.",
            covers: "CRE-07", needs: ["4.2/create-empty"]
        ) { t in
            let response = try t.exchange(t.creation(complete: false, .bytes(t.bytes(t.partSize))))
            try t.expect(
                t.profile.isComplete(response) == false, t.profile.completenessLine(false), response.summary)
        },
        Case(
            "4.2/part-limits", .must, "4.2.2",
            "If there are limits, the response to a creation with ?0 has Upload-Limit.", covers: "CRE-05",
            needs: ["4.2/create-empty"], ranks: 8...9
        ) { t in
            try t.requireLimits()
            let response = try t.exchange(t.creation(complete: false, .bytes([])))
            _ = try t.require(response.limits, "Upload-Limit", response.summary)
        },
        Case(
            "4.2/complete", .must, "4.2.2", "A creation with ?1 and the complete representation stores the file.",
            covers: "CRE-19"
        ) { t in
            let content = t.bytes(t.partSize)
            let request = t.creation(complete: true, .bytes(content))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "from the target")
            try t.expectFile(of: response, to: request, content)
        },
    ]

    static let all: [Case] = [
        Case(
            "4.2/states-complete", .should, "4.2.2",
            "The response to a creation with the complete representation has Upload-Complete: ?1.",
            covers: "CRE-07 CRE-12",
            needs: ["4.2/complete"], ranks: Profile.explicitRanks
        ) { t in
            let response = try t.exchange(t.creation(complete: true, .bytes(t.bytes(t.partSize))))
            try t.expect(t.profile.isComplete(response) == true, "Upload-Complete: ?1", response.summary)
        },
        Case(
            "4.2/empty-complete", .must, "4.2.1", "A creation with ?1 and without content stores an empty file.",
            covers: "CRE-13", needs: ["4.2/complete"]
        ) { t in
            let request = t.creation(complete: true, .bytes([]))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "from the target")
            try t.expect(
                t.profile.isComplete(response) != false,
                "no \(t.profile.completenessLine(false)) in the final response", response.summary)
            try t.expectFile(of: response, to: request, [])
        },
        Case(
            "4.2/chunked-complete", .must, "9", "A chunked creation with ?1 is complete at its last chunk.",
            covers: "CRE-29", needs: ["4.2/complete"]
        ) { t in
            let content = t.bytes(t.partSize * 3)
            let chunks = [Array(content[..<1]), Array(content[1..<t.partSize]), Array(content[t.partSize...])]
            let request = t.creation(complete: true, .chunks(chunks))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "from the target")
            try t.expect(
                t.profile.isComplete(response) != false,
                "no \(t.profile.completenessLine(false)) in the final response", response.summary)
            try t.expectFile(of: response, to: request, content)
        },
        Case(
            "4.2/chunked-part", .must, "9", "A chunked creation with ?0 stores all of its content.",
            covers: "OFF-04 CRE-04", needs: ["4.2/create-part"]
        ) { t in
            let content = t.bytes(t.partSize * 2)
            let request = t.creation(
                complete: false, .chunks([Array(content[..<t.partSize]), Array(content[t.partSize...])]))
            let response = try t.exchange(request)
            try t.expectSuccess(response, "to a chunked creation with ?0")
            try t.expectState(of: t.upload(from: response, to: request), offset: Int64(t.partSize * 2))
        },
        Case(
            "4.2/plain", .must, "4.2", "A request without Upload-Complete is a plain request: it gets no 104.",
            covers: "CRE-09 CRE-20", needs: ["4.2/complete"]
        ) { t in
            let content = t.bytes(t.partSize)
            let request = t.creation(complete: nil, .bytes(content))
            let response = try t.exchange(request)
            try t.expect(response.announcements.isEmpty, "no 104", "104 \(response.announcements.count) times")
            try t.expect(
                t.profile.isComplete(response) != false, "no \(t.profile.completenessLine(false)) in the response",
                response.summary)
            if response.isSuccessful { try t.expectFile(of: response, to: request, content) }
        },
        Case(
            "4.2/distinct", .must, "4", "Two creations create two independent uploads.",
            covers: "CRE-24 CON-10", needs: ["4.2/create-part"]
        ) { t in
            let first = try t.newUpload(t.partSize)
            let second = try t.newUpload(t.partSize * 2)
            try t.expect(first.endpoint != second.endpoint, "two different Locations", first.location)
            try t.expectState(of: first, offset: Int64(t.partSize))
            try t.expectState(of: second, offset: Int64(t.partSize * 2))
        },
        Case(
            "4.2/interrupted-not-complete", .must, "4.2.2",
            "An interrupted creation does not complete the upload, and the offset does not exceed the bytes sent.",
            covers: "CRE-16 H11-13", needs: ["4.2/announcement"]
        ) { t in
            let (connection, upload, _) = try t.announcedUpload(sending: t.partSize, of: t.partSize * 3)
            connection.endOutput()
            _ = try? connection.awaitEnding()
            let state = try t.state(of: upload)
            try t.expect(state.isComplete == false, "an incomplete upload", state.response.summary)
            try t.expect(state.offset <= t.partSize, "Upload-Offset: \(t.partSize) at most", "\(state.offset)")
        },
        Case(
            "4.2/interrupted-keeps-prefix", .should, "4.2.2",
            "The bytes of an interrupted creation that arrived are kept.", covers: "CRE-15",
            needs: ["4.2/interrupted-not-complete"]
        ) { t in
            let (connection, upload, _) = try t.announcedUpload(sending: t.partSize * 2, of: t.partSize * 3)
            connection.endOutput()
            // An offset retrieval may end the creation before the server has read all bytes that arrived.
            _ = try? connection.awaitEnding()
            let offset = try t.state(of: upload).offset
            try t.expect(offset > 0 && offset <= t.partSize * 2, "an offset in 1…\(t.partSize * 2)", "\(offset)")
        },
        Case(
            "4.2/reset-not-complete", .must, "4.2.2",
            "A creation whose connection is reset does not complete the upload, even if no content was sent.",
            covers: "CRE-16 CRE-26", needs: ["4.2/announcement"]
        ) { t in
            for count in [0, t.partSize] {
                let (connection, upload, _) = try t.announcedUpload(sending: count, of: t.partSize * 3)
                connection.reset()
                let state = try t.state(of: upload)
                try t.expect(state.isComplete == false, "an incomplete upload", state.response.summary)
                try t.expect(state.offset <= count, "Upload-Offset: \(count) at most", "\(state.offset)")
            }
        },
        Case(
            "4.2/interrupted-continues", .must, "4.2.2",
            "An append can complete the upload of an interrupted creation.",
            covers: "CRE-23 APP-08", needs: ["4.2/interrupted-not-complete", "4.4/append"]
        ) { t in
            let total = t.partSize * 3
            let (connection, upload, request) = try t.announcedUpload(sending: t.partSize, of: total)
            connection.endOutput()
            let offset = try t.state(of: upload).offset
            let remaining = t.bytes(total - Int(offset), from: Int(offset))
            let response = try t.appending(upload, at: offset, complete: true, .bytes(remaining))
            try t.expectSuccess(response, "to the append of the remainder")
            try t.expectFile(of: response, to: request, t.bytes(total))
        },
        Case(
            "4.2/length-recorded", .must, "4.2.2", "An offset retrieval reports the length that the creation stated.",
            covers: "CRE-17 OFF-03 VER-26", needs: ["4.2/create-part"], ranks: 6...9
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 4)
            let response = try t.state(of: upload).response
            try t.expect(
                response.integer("Upload-Length") == Int64(t.partSize * 4), "Upload-Length: \(t.partSize * 4)",
                response.summary)
        },
        Case(
            "4.2/length-derived", .must, "4.2.2",
            "The Content-Length of a creation with ?1 is the length of the upload, even if the creation is interrupted.",
            covers: "CRE-18 OFF-03 VER-25 VER-26", needs: ["4.2/interrupted-not-complete"], ranks: 6...9
        ) { t in
            let (connection, upload, _) = try t.announcedUpload(sending: t.partSize, of: t.partSize * 3)
            connection.endOutput()
            let response = try t.state(of: upload).response
            try t.expect(
                response.integer("Upload-Length") == Int64(t.partSize * 3), "Upload-Length: \(t.partSize * 3)",
                response.summary)
        },
        Case(
            "4.2/offset-ignored", .should, "4.2.1", "Upload-Offset in a creation is ignored.", covers: "CRE-28",
            needs: ["4.2/create-part"], ranks: Profile.explicitRanks
        ) { t in
            let request = t.creation(complete: false, .bytes(t.bytes(t.partSize))).with("Upload-Offset", "7")
            let response = try t.exchange(request)
            try t.expectSuccess(response, "to a creation with Upload-Offset")
            try t.expectState(of: t.upload(from: response, to: request), offset: Int64(t.partSize))
        },
        Case(
            "4.2/location-resolves", .should, "RFC 9110 10.2.2",
            "Location is a URI reference that, resolved against the request's URL, gives the upload resource.",
            covers: "CRE-27", needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.newUpload()
            try t.expect(
                upload.location.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a URI reference", upload.location)
            try t.expect(
                upload.endpoint.address == t.subject.endpoint.address, "a Location on the same server",
                upload.location)
        },
        Case(
            "4.2/other-method", .info, "4.2.1",
            "The responses to creations with other methods are recorded, without a verdict.",
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
    /// Skips the case if the subject has no limits.
    func requireLimits() throws {
        if subject.limits.allSatisfy({ $0.key == "min-size" && $0.value == 0 }) { throw skip("there are no limits") }
    }

    /// Expects that the finished file has this content, if the file can be read.
    func expectFile(of response: Response, to request: Request, _ content: [UInt8]) throws {
        guard subject.allows(content.count), let fileURL = subject.fileURL(of: response, to: request, in: profile)
        else { return }
        let file = try download(fileURL)
        try expect(file.status == 200, "200 to GET of the finished file", file.summary)
        try expect(
            file.contentSize == content.count && file.content[...] == content.prefix(RawConnection.Bounds.keptContent),
            "a file of the \(content.count) bytes sent",
            "\(file.contentSize) bytes, which differ first at offset \(file.firstDifference(from: content))")
    }
}

extension Response {
    func firstDifference(from other: [UInt8]) -> Int {
        zip(content, other).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            ?? min(content.count, other.count)
    }
}
