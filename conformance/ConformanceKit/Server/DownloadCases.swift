import HTTPSemantics

/// RFC 9110 section 14: ranges of a finished file.
enum DownloadCases {
    static let ranges: [Case] = [
        Case(
            "14/complete", .must, "RFC 9110 9.3.1", "A GET of a finished file returns the bytes that were sent.",
            covers: "RNG-18"
        ) { t in
            let file = try t.finishedFile()
            let response = try t.download(file)
            try t.expect(response, isOneOf: [200], "to GET")
            try t.expect(
                response.content == t.bytes(CaseContext.fileSize), "the bytes sent", "\(response.contentSize) bytes")
        },
        Case(
            "14/accept-ranges", .should, "RFC 9110 14.3", "A response to GET has Accept-Ranges: bytes.",
            covers: "RNG-18", needs: ["14/complete"]
        ) { t in
            let response = try t.download(t.finishedFile())
            try t.expect(
                response.list("Accept-Ranges") == ["bytes"], "Accept-Ranges: bytes",
                response.fields["Accept-Ranges"] ?? "none")
        },
        Case(
            "14/single", .should, "RFC 9110 15.3.7", "A single range gets 206 with exactly its bytes.",
            covers: "RNG-03", needs: ["14/complete"]
        ) { t in try t.expectRange("bytes=2-4", 2..<5) },
        range("open-end", "A range without an end extends to the end of the file.", "RNG-04", "bytes=990-", 990..<1000),
        range(
            "beyond-end", "A range that extends beyond the end of the file is cut off there.", "RNG-04",
            "bytes=990-5000", 990..<1000),
        range("suffix", "A suffix range is the last bytes of the file.", "RNG-05", "bytes=-3", 997..<1000),
        range(
            "long-suffix", "A suffix range that is longer than the file is the complete file.", "RNG-05", "bytes=-5000",
            0..<1000),
        range(
            "huge-end", "A last position beyond 64 bits is handled like one beyond the end of the file.", "RNG-21",
            "bytes=990-99999999999999999999", 990..<1000),
        range("one-byte", "A range of one byte gets 206 with this byte.", "RNG-09", "bytes=0-0", 0..<1),
        range("unit-case", "The range unit is compared without regard to case.", "RNG-02", "BYTES=2-4", 2..<5),
        Case(
            "14/unsatisfiable", .should, "RFC 9110 15.5.17",
            "A range beyond the end gets 416 with the size of the file.", covers: "RNG-06 RNG-21 RNG-24",
            needs: ["14/single"]
        ) { t in
            let file = try t.finishedFile()
            for range in ["bytes=1000-", "bytes=5000-6000", "bytes=18446744073709551616-", "bytes=-0"] {
                let response = try t.download(file, [("Range", range)])
                try t.expect(response, isOneOf: [416], "to Range: \(range)")
                try t.expect(
                    response.single("Content-Range") == "bytes */1000", "Content-Range: bytes */1000", response.summary)
                try t.expect(
                    response.content.firstRange(of: t.bytes(20)) == nil, "none of the file's bytes", response.summary)
            }
        },
        ignoring(
            "unknown-unit", .must, "RFC 9110 14.2", "A Range with an unknown unit is ignored.", "RNG-02", ["items=0-1"]),
        ignoring(
            "invalid", .may, "RFC 9110 14.2", "An invalid Range is ignored or refused.", "RNG-07",
            ["bytes=5-2", "bytes=a-b", "bytes=", "bytes=--3"]),
        Case(
            "14/repeated-field", .may, "RFC 9110 5.3",
            "Two Range field lines are ignored, refused, or combined into one list.", covers: "RNG-23",
            needs: ["14/single"]
        ) { t in
            let response = try t.download(t.finishedFile(), [("Range", "bytes=0-1"), ("Range", "bytes=4-5")])
            try t.expect([200, 206, 400, 416].contains(response.status), "200, or a refusal", response.summary)
            if response.status == 206 {
                try t.expect(
                    response.fields["Content-Type"]?.hasPrefix("multipart/byteranges") == true,
                    "both ranges, or neither", response.summary)
            }
        },
        Case(
            "14/head", .must, "RFC 9110 14.2", "Range in a HEAD request is ignored.", covers: "RNG-01",
            needs: ["14/single"]
        ) { t in
            let file = try t.finishedFile()
            let request = Request("HEAD", file.target, [("Range", "bytes=0-1")] + t.subject.extraFields)
            let response = try t.exchange(request, at: file)
            try t.expect(response, isOneOf: [200], "to HEAD with Range")
            try t.expect(
                response.single("Content-Length") ?? "1000" == "1000", "Content-Length: 1000",
                response.fields["Content-Length"] ?? "")
        },
        Case(
            "14/several", .must, "RFC 9110 15.3.7.2",
            "Several ranges get multipart/byteranges, in which each part has Content-Range.",
            covers: "RNG-08 RNG-10 RNG-25 RNG-26", needs: ["14/single"]
        ) { t in
            let response = try t.download(t.finishedFile(), [("Range", "bytes=500-509,0-9,5000-")])
            if response.status == 200 { throw t.skip("the server answers several ranges with the complete file") }
            try t.expect(response, isOneOf: [206], "to several ranges")
            try t.expect(
                !response.fields.contains("Content-Range"), "no Content-Range in the header section", response.summary)
            let type = response.single("Content-Type").flatMap { MediaType(parsing: $0) }
            let boundary = try t.require(
                type?.matches("multipart/byteranges") == true ? type?.parameter("boundary") : nil,
                "multipart/byteranges with a boundary", response.summary)
            let parts = BodyParts(response.content, boundary: boundary)
            try t.expect(
                parts.ranges == ["bytes 500-509/1000", "bytes 0-9/1000"], "the ranges 500-509 and 0-9 in this order",
                parts.ranges.joined(separator: ", "))
            try t.expect(
                parts.contents == [t.bytes(10, from: 500), t.bytes(10)], "the bytes of the ranges 500-509 and 0-9",
                response.summary)
        },
        Case(
            "14/many", .may, "RFC 9110 14.2",
            "The response to many overlapping ranges is not many times as large as the file.",
            covers: "RNG-11",
            needs: ["14/single"]
        ) { t in
            let set = "bytes=" + Array(repeating: "0-", count: 200).joined(separator: ",")
            let response = try t.download(t.finishedFile(), [("Range", set)])
            try t.expect(response.contentSize <= 4 * 1000, "4 kB at most", "\(response.contentSize) bytes")
        },
        Case(
            "14/empty-file", .may, "RFC 9110 14.2", "A range of an empty file gets 416, or 200 without content.",
            covers: "RNG-22",
            needs: ["14/single", "4.2/empty-complete"]
        ) { t in
            let file = try t.finishedFile(0)
            for range in ["bytes=0-", "bytes=-5"] {
                let response = try t.download(file, [("Range", range)])
                try t.expect(response, isOneOf: [200, 416], "to Range: \(range) of an empty file")
                if response.status == 416 {
                    try t.expect(
                        response.single("Content-Range") == "bytes */0", "Content-Range: bytes */0", response.summary)
                }
            }
        },
    ]

    static let conditions: [Case] = [
        Case(
            "14/if-range", .must, "RFC 9110 13.1.5", "A range is served only if its If-Range still matches.",
            covers: "RNG-12 RNG-14", needs: ["14/single"]
        ) { t in
            let file = try t.finishedFile()
            let tag = try t.strongTag(of: file)
            let wanted = [(tag, 206), ("W/" + tag, 200), ("\"another\"", 200)]
            for (condition, status) in wanted {
                let response = try t.download(file, [("Range", "bytes=2-4"), ("If-Range", condition)])
                try t.expect(response, isOneOf: [status], "to If-Range: \(condition)")
            }
            try t.expect(t.download(file, [("If-Range", tag)]), isOneOf: [200], "to If-Range without Range")
        },
        Case(
            "14/if-range-date", .must, "RFC 9110 13.1.5", "A date in If-Range matches only if it equals Last-Modified.",
            covers: "RNG-13", needs: ["14/single"]
        ) { t in
            let file = try t.finishedFile()
            let response = try t.download(
                file, [("Range", "bytes=2-4"), ("If-Range", "Fri, 31 Dec 2100 23:59:59 GMT")])
            try t.expect(response, isOneOf: [200], "to If-Range with a later date")
        },
        Case(
            "14/preconditions", .must, "RFC 9110 13.2.2", "Preconditions are evaluated before Range.",
            covers: "RNG-15 RNG-16 RNG-24", needs: ["14/single"]
        ) { t in
            let file = try t.finishedFile()
            let tag = try t.strongTag(of: file)
            let range = ("Range", "bytes=2-4")
            for (name, value, status) in [
                ("If-Match", "\"another\"", 412), ("If-Match", "W/" + tag, 412), ("If-Match", tag, 206),
                ("If-None-Match", tag, 304), ("If-None-Match", "W/" + tag, 304), ("If-None-Match", "\"another\"", 206),
            ] {
                let response = try t.download(file, [range, (name, value)])
                try t.expect(response, isOneOf: [status], "to \(name): \(value) with Range")
            }
        },
        Case(
            "14/same-fields", .must, "RFC 9110 15.3.7",
            "The fields that describe the file are the same in 206 and in 200.",
            covers: "RNG-17", needs: ["14/single"]
        ) { t in
            let file = try t.finishedFile()
            let complete = try t.download(file)
            let part = try t.download(file, [("Range", "bytes=2-4")])
            for name in ["ETag", "Cache-Control", "Expires", "Content-Location", "Vary"] {
                try t.expect(
                    part.fields[name] == complete.fields[name], "\(name): \(complete.fields[name] ?? "absent")",
                    part.fields[name] ?? "absent")
            }
        },
        Case(
            "14/distinct-tags", .must, "RFC 9110 8.8.3",
            "Files with different bytes have different strong entity tags.",
            covers: "RNG-19", needs: ["14/single"]
        ) { t in
            let first = try t.strongTag(of: t.finishedFile(1000))
            let second = try t.strongTag(of: t.finishedFile(999))
            try t.expect(first != second, "two different entity tags", first)
        },
        Case(
            "14/replaced", .must, "RFC 9110 8.8",
            "A download does not mix the bytes of a file with those of its replacement.",
            covers: "RNG-20", needs: ["14/complete"]
        ) { t in
            guard t.subject.method == "PUT", t.subject.allows(8 << 20) else {
                throw t.skip("replacing a file needs PUT, and limits of 8 MiB or more")
            }
            let first = t.creation(complete: true, .bytes([UInt8](repeating: UInt8(ascii: "a"), count: 8 << 20)))
            var second = t.creation(complete: true, .bytes([UInt8](repeating: UInt8(ascii: "b"), count: 8 << 20)))
            second.target = first.target
            let place = t.subject.endpoint.at(first.target)
            try t.setup { try t.expectSuccess(t.exchange(first), "from the target") }
            let connection = try t.connect(to: place)
            let request = Request("GET", place.target, t.subject.extraFields)
            try connection.send(request)
            // The file is larger than the socket buffers, so the server is still sending it.
            _ = try connection.awaitHead(within: t.subject.timeout)
            try t.setup { try t.expectSuccess(t.exchange(second), "from the target") }
            // The server may abort the download. The case ends here, because no bytes are mixed.
            guard let file = try? connection.readResponse() else { return }
            try t.expect(Set(file.content) == [UInt8(ascii: "a")], "the bytes of one file", "bytes of both")
            let again = try t.download(place)
            try t.expect(Set(again.content) == [UInt8(ascii: "b")], "the new file afterwards", "other bytes")
        },
        Case(
            "14/served-as-data", .should, "13", "A finished file is served with X-Content-Type-Options: nosniff.",
            covers: "SEC-13", needs: ["14/complete"]
        ) { t in
            let response = try t.download(t.finishedFile())
            try t.expect(
                response.list("X-Content-Type-Options") == ["nosniff"], "X-Content-Type-Options: nosniff",
                response.fields["X-Content-Type-Options"] ?? "none")
        },
    ]

    private static func range(
        _ name: String, _ requirement: String, _ covers: String, _ value: String, _ bytes: Range<Int>
    ) -> Case {
        Case("14/\(name)", .must, "RFC 9110 14.1.2", requirement, covers: covers, needs: ["14/single"]) { t in
            try t.expectRange(value, bytes)
        }
    }

    private static func ignoring(
        _ name: String, _ level: Level, _ section: String, _ requirement: String, _ covers: String, _ values: [String]
    ) -> Case {
        Case("14/\(name)", level, section, requirement, covers: covers, needs: ["14/single"]) { t in
            let file = try t.finishedFile()
            for value in values {
                let response = try t.download(file, [("Range", value)])
                try t.expect(response, isOneOf: level == .must ? [200] : [200, 400, 416], "to Range: \(value)")
            }
        }
    }
}

extension CaseContext {
    static let fileSize = 1000

    /// Uploads a file with the test content and returns its URL.
    func finishedFile(_ size: Int = fileSize) throws -> Endpoint {
        guard subject.downloadSource != nil else { throw skip("finished files cannot be read at a URL of the target") }
        guard subject.allows(size) else { throw skip("the limits of the server are too low for this case") }
        return try setup {
            let request = creation(complete: true, .bytes(bytes(size)))
            let response = try exchange(request)
            try expectSuccess(response, "from the target")
            return try fileURL(of: response, to: request)
        }
    }

    func strongTag(of file: Endpoint) throws -> String {
        let response = try setup { try download(file) }
        guard let tag = response.single("ETag"), !tag.hasPrefix("W/") else {
            throw skip("the server sends no strong entity tag")
        }
        return tag
    }

    func expectRange(_ value: String, _ range: Range<Int>) throws {
        let response = try download(finishedFile(), [("Range", value)])
        try expect(response, isOneOf: [206], "to Range: \(value)")
        let wanted = "bytes \(range.lowerBound)-\(range.upperBound - 1)/1000"
        try expect(response.single("Content-Range") == wanted, "Content-Range: \(wanted)", response.summary)
        try expect(
            response.content == bytes(range.count, from: range.lowerBound),
            "exactly the bytes \(range.lowerBound)-\(range.upperBound - 1)", "\(response.contentSize) bytes")
    }
}

/// The parts of a multipart/byteranges body.
struct BodyParts {
    /// The values of Content-Range.
    private(set) var ranges: [String] = []
    private(set) var contents: [[UInt8]] = []

    init(_ body: [UInt8], boundary: String) {
        let delimiter = Array("--\(boundary)".utf8)
        var remaining = body[...]
        while let start = remaining.firstRange(of: delimiter)?.upperBound {
            remaining = remaining[start...]
            if remaining.starts(with: Array("--".utf8)) { return }
            guard let head = remaining.firstRange(of: Array("\r\n\r\n".utf8)),
                let end = remaining[head.upperBound...].firstRange(of: Array("\r\n".utf8) + delimiter)
            else { return }
            let lines = String(decoding: remaining[..<head.lowerBound], as: UTF8.self).split(separator: "\r\n")
            let range = lines.first { $0.lowercased().hasPrefix("content-range:") }
            ranges.append(String(range?.dropFirst(14).drop { $0 == " " } ?? ""))
            contents.append(Array(remaining[head.upperBound..<end.lowerBound]))
            remaining = remaining[end.lowerBound...]
        }
    }
}
