import HTTPSemantics

/// Section 10: integrity digests (RFC 9530).
enum DigestCases {
    static let all: [Case] = [
        Case(
            "10/representation", .should, "10.1", "An upload with a correct Repr-Digest is accepted.",
            covers: "DIG-01 DIG-09", needs: ["4.4/finish"]
        ) { t in
            let complete = t.bytes(t.partSize * 3)
            for field in [t.digest(sha256: complete), t.digest(sha512: complete)] {
                let response = try t.upload(t.partSize * 3, with: ("Repr-Digest", field))
                try t.expectSuccess(response, "from the target for the correct digest")
            }
        },
        Case(
            "10/wrong-representation", .should, "10.1", "An upload with a wrong Repr-Digest is refused at completion.",
            covers: "DIG-01 DIG-09", needs: ["10/representation"]
        ) { t in
            for field in [t.digest(sha256: t.bytes(3)), t.digest(sha512: t.bytes(3))] {
                let response = try t.upload(t.partSize * 3, with: ("Repr-Digest", field))
                try t.expectRefusal(response, "to a wrong digest of the representation")
            }
        },
        Case(
            "10/content", .should, "10.2", "An append with a correct Content-Digest is accepted.", covers: "DIG-02",
            needs: ["4.4/append"]
        ) { t in
            let content = t.bytes(t.partSize)
            for digest in [t.digest(sha256: content), t.digest(sha512: content)] {
                let upload = try t.newUpload()
                let request = t.append(upload, at: 0, complete: false, .bytes(content)).with("Content-Digest", digest)
                try t.expectSuccess(t.exchange(request, with: upload), "to the correct digest")
                try t.expectState(of: upload, offset: Int64(t.partSize))
            }
        },
        Case(
            "10/wrong-content", .should, "10.2",
            "An append with a wrong Content-Digest is refused and changes nothing.",
            covers: "DIG-02", needs: ["10/content"]
        ) { t in
            let content = t.bytes(t.partSize)
            for digest in [t.digest(sha256: t.bytes(3)), t.digest(sha512: t.bytes(3))] {
                let upload = try t.newUpload(t.partSize)
                let append = t.append(upload, at: Int64(t.partSize), complete: true, .bytes(content))
                let response = try t.exchange(append.with("Content-Digest", digest), with: upload)
                try t.expectRefusal(response, "to a wrong digest of the content")
                try t.expect(
                    t.profile.isComplete(response) != true, "no \(t.profile.completenessLine(true)) in the refusal",
                    response.summary)
                let head = try t.exchange(t.retrieval(upload), with: upload)
                guard head.isSuccessful else { continue }
                try t.expect(
                    head.integer("Upload-Offset") == Int64(t.partSize), "Upload-Offset: \(t.partSize)", head.summary)
                let right = append.with("Content-Digest", t.digest(sha256: content))
                try t.expectSuccess(t.exchange(right, with: upload), "to the correct digest of the same content")
            }
        },
        Case(
            "10/unverified-not-reported", .should, "10.2",
            "A 104 reports no bytes whose Content-Digest has not been verified.", covers: "DIG-07",
            needs: ["10/wrong-content", "4.4/progress"], ranks: 8...9
        ) { t in
            guard t.subject.allows(CaseContext.slowContent + 1) else {
                throw t.skip("the limits of the server are too low for this case")
            }
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let request = t.append(upload, at: 0, complete: false, .declared(Int64(CaseContext.slowContent + 1)))
                .with("Content-Digest", t.digest(sha256: t.bytes(3)))
            t.setLastRequest(request, upload.endpoint)
            try connection.send(request)
            let reported = try t.sendSlowContent(on: connection) ?? 0
            try t.expect(reported == 0, "no offset above 0", "Upload-Offset: \(reported)")
        },
        Case(
            "10/want", .should, "10.1", "The final response to a creation with Want-Repr-Digest has Repr-Digest.",
            covers: "DIG-03", needs: ["4.4/finish"]
        ) { t in
            let response = try t.upload(t.partSize * 3, with: ("Want-Repr-Digest", "sha-512=3, sha-256=10"))
            try t.expectSuccess(response, "from the target")
            let field = try t.require(
                DigestField(fieldLines: response.fields.values("Repr-Digest")), "Repr-Digest", response.summary)
            try t.expect(
                field[.sha256] == SecureHash.sha256(t.bytes(t.partSize * 3)), t.digest(sha256: t.bytes(t.partSize * 3)),
                field.serialized)
        },
        Case(
            "10/want-excluded", .should, "RFC 9530 4", "An algorithm with the preference 0 is not used.",
            covers: "DIG-08", needs: ["10/want"]
        ) { t in
            let response = try t.upload(t.partSize * 3, with: ("Want-Repr-Digest", "sha-256=0, sha-512=1"))
            guard let field = DigestField(fieldLines: response.fields.values("Repr-Digest")) else {
                throw t.skip("the server sends no Repr-Digest")
            }
            try t.expect(field[.sha256] == nil, "no sha-256", field.serialized)
            try t.expect(
                field[.sha512] == SecureHash.sha512(t.bytes(t.partSize * 3)), t.digest(sha512: t.bytes(t.partSize * 3)),
                field.serialized)
        },
        Case(
            "10/running", .may, "10.1", "A Repr-Digest of an incomplete upload is the digest of its bytes so far.",
            covers: "DIG-10", needs: ["10/want"]
        ) { t in
            let request = t.creation(complete: false, .bytes(t.bytes(t.partSize)))
                .with("Want-Repr-Digest", "sha-256=10")
            let response = try t.exchange(request)
            _ = try? t.upload(from: response, to: request)
            guard let field = DigestField(fieldLines: response.fields.values("Repr-Digest")) else {
                throw t.skip("the server sends no digest of incomplete uploads")
            }
            try t.expect(
                field[.sha256] == SecureHash.sha256(t.bytes(t.partSize)), t.digest(sha256: t.bytes(t.partSize)),
                field.serialized)
        },
        Case(
            "10/unknown-algorithm", .must, "RFC 9530 2", "A digest with an unknown algorithm is ignored.",
            covers: "DIG-05", needs: ["4.4/finish"]
        ) { t in
            try t.expectSuccess(
                t.upload(t.partSize * 3, with: ("Repr-Digest", "example=:AAAA:")), "to an unknown algorithm")
        },
        Case(
            "10/known-beside-unknown", .must, "RFC 9530 2",
            "A digest with a known algorithm is verified even if another one is unknown.", covers: "DIG-05",
            needs: ["10/wrong-representation"]
        ) { t in
            guard try t.verifiesDigests() else { throw t.skip("the server does not verify digests") }
            let field = "example=:AAAA:, " + t.digest(sha256: t.bytes(3))
            try t.expectRefusal(t.upload(t.partSize * 3, with: ("Repr-Digest", field)), "to a wrong known digest")
        },
        Case(
            "10/insecure", .should, "RFC 9530 6", "A digest with an insecure algorithm is ignored.", covers: "DIG-09",
            needs: ["4.4/finish"]
        ) { t in
            let response = try t.upload(t.partSize * 3, with: ("Repr-Digest", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:"))
            try t.expectSuccess(response, "to a wrong md5")
        },
        Case(
            "10/unparsable", .should, "RFC 9530 2", "A digest field that cannot be parsed is ignored or gets 400.",
            covers: "DIG-06", needs: ["4.4/append"]
        ) { t in
            let upload = try t.newUpload()
            let request = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize)))
                .with("Content-Digest", "sha-256=abc")
            let response = try t.exchange(request, with: upload)
            try t.expect(response.isSuccessful || response.status == 400, "2xx or 400", response.summary)
        },
        Case(
            "10/coded", .must, "8, 9, 10",
            "Digests are calculated with the content coding and without the transfer coding.",
            covers: "DIG-04 APP-23", needs: ["4.2/chunked-complete"]
        ) { t in
            // An empty gzip member.
            let content: [UInt8] = [
                0x1F, 0x8B, 0x08, 0, 0, 0, 0, 0, 0, 0x03, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ]
            if t.partSize > content.count { throw t.skip("the minimum sizes of the server are too high for this case") }
            let request = t.creation(complete: true, .chunks([Array(content[..<7]), Array(content[7...])]))
                .with("Content-Encoding", "gzip").with("Repr-Digest", t.digest(sha256: content))
                .with("Content-Digest", t.digest(sha256: content))
            let response = try t.exchange(request)
            if response.status == 415 { throw t.skip("the server refuses content codings") }
            try t.expectSuccess(response, "to digests of the coded bytes")
            try t.expectFile(of: response, to: request, content)
        },
    ]
}

extension CaseContext {
    func digest(sha256 bytes: [UInt8]) -> String {
        DigestField(values: [(.sha256, SecureHash.sha256(bytes))]).serialized
    }

    func digest(sha512 bytes: [UInt8]) -> String {
        DigestField(values: [(.sha512, SecureHash.sha512(bytes))]).serialized
    }

    /// Uploads `count` bytes in two requests, the first of which has an additional field.
    func upload(_ count: Int, with field: (String, String)) throws -> Response {
        let request = creation(complete: false, .bytes(bytes(partSize))).with(field.0, field.1)
        let created = try exchange(request)
        try expectSuccess(created, "to a creation with \(field.0)")
        let upload = try upload(from: created, to: request)
        return try appending(
            upload, at: Int64(partSize), complete: true, .bytes(bytes(count - partSize, from: partSize)))
    }

    func verifiesDigests() throws -> Bool {
        try !upload(partSize * 3, with: ("Repr-Digest", digest(sha256: bytes(3)))).isSuccessful
    }
}
