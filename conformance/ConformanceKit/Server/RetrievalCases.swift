/// Section 4.3: retrieval of the offset.
enum RetrievalCases {
    static let all: [Case] = [
        Case(
            "4.3/after-completion", .must, "4.3.2",
            "A retrieval reports that a complete upload is complete, unless the server does not keep complete uploads.",
            covers: "OFF-02 CMP-04 CMP-02", needs: ["4.4/finish"]
        ) { t in
            let upload = try t.completedUpload(t.partSize)
            let response = try t.exchange(t.retrieval(upload), with: upload)
            if [404, 410].contains(response.status) { throw t.skip("the server does not keep complete uploads") }
            try t.expectSuccess(response, "to HEAD")
            try t.expect(t.profile.isComplete(response) == true, "a complete upload", response.summary)
            try t.expect(
                response.integer("Upload-Offset") == Int64(t.partSize), "Upload-Offset: \(t.partSize)", response.summary
            )
        },
        Case(
            "4.3/no-length", .must, "4.3.2", "The response for an upload of unknown length has no Upload-Length.",
            covers: "OFF-04", needs: ["4.2/create-part"]
        ) { t in
            let response = try t.state(of: t.newUpload(t.partSize)).response
            try t.expect(!response.fields.contains("Upload-Length"), "no Upload-Length", response.summary)
        },
        Case(
            "4.3/limits", .must, "4.3.2", "An offset retrieval reports the upload's limits.", covers: "OFF-05",
            needs: ["4.2/create-empty"], ranks: 8...9
        ) { t in
            let response = try t.state(of: t.newUpload()).response
            _ = try t.require(response.limits, "Upload-Limit", response.summary)
        },
        Case(
            "4.3/no-store", .should, "4.3.2", "The response to an offset retrieval must not be stored by caches.",
            covers: "OFF-06 CCH-01", needs: ["4.2/create-empty"]
        ) { t in
            let response = try t.state(of: t.newUpload()).response
            try t.expect(
                response.list("Cache-Control").contains("no-store"), "Cache-Control: no-store",
                response.fields["Cache-Control"] ?? "no Cache-Control")
        },
        Case(
            "4.3/unconditional", .should, "4.3.2", "An offset retrieval is not answered by 304.", covers: "CCH-01",
            needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.newUpload()
            let request = t.retrieval(upload).with("If-None-Match", "*")
            let response = try t.exchange(request, with: upload)
            try t.expect(response.status != 304, "the offset", response.summary)
        },
        Case(
            "4.3/get", .must, "4.3.1", "GET of an upload has the same Upload fields as HEAD.", covers: "OFF-07",
            needs: ["4.2/create-part"], ranks: 8...9
        ) { t in
            let upload = try t.newUpload(t.partSize, length: t.partSize * 2)
            let head = try t.state(of: upload).response
            let get = try t.exchange(t.retrieval(upload, "GET"), with: upload)
            try t.expectSuccess(get, "to GET of the upload")
            for name in ["Upload-Offset", "Upload-Complete", "Upload-Length"] {
                try t.expect(
                    get.fields[name] == head.fields[name], "\(name): \(head.fields[name] ?? "absent")", get.summary)
            }
            try t.expect(get.limits != nil, "Upload-Limit", get.summary)
        },
        Case(
            "4.3/get-empty", .should, "4.3.2", "GET of an upload does not return its bytes.",
            covers: "OFF-08", needs: ["4.3/get"], ranks: 8...9
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let response = try t.exchange(t.retrieval(upload, "GET"), with: upload)
            try t.expect(
                response.content.firstRange(of: t.bytes(t.partSize)) == nil, "none of the upload's bytes",
                "\(response.contentSize) bytes, which include them")
        },
        Case(
            "4.3/unknown", .must, "4.3.2", "A retrieval for an unknown upload is refused.", covers: "OFF-12 PRB-06",
            needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.unknownUpload()
            let response = try t.exchange(t.retrieval(upload), with: upload)
            try t.expectRefusal(response, "to HEAD of an unknown upload")
            try t.expect(!response.fields.contains("Upload-Offset"), "no Upload-Offset", response.summary)
        },
        Case(
            "4.3/unknown-status", .should, "4.3.2", "Requests for an unknown upload get 404 or 410.",
            covers: "OFF-12 VER-15",
            needs: ["4.3/unknown"]
        ) { t in
            let upload = try t.unknownUpload()
            let append = t.append(upload, at: 0, complete: true, .bytes(t.bytes(t.partSize)))
            for request in [t.retrieval(upload), append, t.cancellation(upload)] {
                let statuses = t.profile.rank <= 6 ? [404] : [404, 410]
                try t.expect(
                    t.exchange(request, with: upload), isOneOf: statuses, "to \(request.method) of an unknown upload")
            }
        },
        Case(
            "4.3/head-content", .must, "RFC 9110 9.3.2", "A response to HEAD has no content.",
            covers: "OFF-17 PRB-06 H11-16", needs: ["4.2/create-empty"]
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let unknown = try t.unknownUpload()
            let connection = try t.connect(to: upload.endpoint)
            let requests = [t.retrieval(unknown), t.retrieval(upload)]
            for request in requests { try connection.send(request) }
            let first = try connection.readResponse()
            try t.expectRefusal(first, "to HEAD of an unknown upload")
            if first.fields["Connection"]?.lowercased() == "close" {
                throw t.skip("the server closes the connection after the refusal")
            }
            try t.expectSuccess(connection.readResponse(), "to the next HEAD on the connection")
        },
        Case(
            "4.3/lifetime", .should, "4.1.4",
            "max-age decreases with time, but not faster than the time passes.",
            covers: "OFF-16 LIM-12", needs: ["4.2/create-empty"], ranks: Profile.explicitRanks
        ) { t in
            let upload = try t.newUpload()
            let first = try t.state(of: upload).response
            guard let before = first.limits?["max-age"] else { throw t.skip("there is no max-age") }
            guard before > 5 else { throw t.skip("a max-age of \(before) s is too short") }
            Deadline.pause(.milliseconds(2100))
            let second = try t.state(of: upload).response
            let after = try t.require(second.limits?["max-age"], "max-age again", second.summary)
            let passed = (second.arrivedAt - first.arrivedAt) / 1_000_000_000
            try t.expect(after < before, "a max-age of less than \(before) after \(passed) s", "\(after)")
            try t.expect(
                after + passed + 1 >= before, "a max-age of about \(before - passed) after \(passed) s", "\(after)")
        },
        Case(
            "4.3/refuses-upload-fields", .must, "4.3.1 of draft -05",
            "Up to version 6 a retrieval or cancellation with fields of an append gets 400.",
            covers: "VER-14", needs: ["4.2/create-empty"], ranks: 3...6
        ) { t in
            let upload = try t.newUpload()
            let (name, value) = t.profile.completeness(true)
            for request in [
                t.retrieval(upload).with("Upload-Offset", "0"), t.retrieval(upload).with(name, value),
                t.cancellation(upload).with("Upload-Offset", "0"), t.cancellation(upload).with(name, value),
            ] {
                try t.expect(
                    t.exchange(request, with: upload), isOneOf: [400], "to \(request.method) with a field of an append")
            }
            try t.expectState(of: upload, offset: 0)
        },
    ]
}

extension CaseContext {
    /// Returns an upload whose URI has the same form as the URI of an existing upload. It does not exist on the server.
    func unknownUpload() throws -> Upload {
        let known = try newUpload()
        let target = known.endpoint.target
        // Each of the last letters and digits of the path is replaced by another one.
        let path = target.prefix { $0 != "?" }
        let start = path.lastIndex { !$0.isLetter && !$0.isNumber }.map { path.index(after: $0) } ?? path.startIndex
        let changed = path[start...].map { character -> Character in
            switch character {
            case "0"..."8", "a"..."e", "A"..."E":
                character.asciiValue.map { Character(UnicodeScalar($0 + 1)) } ?? character
            case "9": "0"
            default: character.isNumber ? "1" : character == "f" ? "a" : character == "F" ? "A" : character
            }
        }
        let other = path[..<start] + String(changed) + target[path.endIndex...]
        return Upload(location: String(other), endpoint: known.endpoint.at(String(other)))
    }
}
