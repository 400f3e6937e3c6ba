/// Section 13: access of one principal to the uploads of another.
enum PrincipalCases {
    static let all: [Case] = [
        Case(
            "13/other-principal", .should, "13", "Requests of another principal for an upload are refused.",
            covers: "SEC-02", needs: ["4.2/create-part"]
        ) { t in
            try t.requireOtherPrincipal()
            let upload = try t.newUpload(t.partSize)
            let requests = [
                t.retrieval(upload), t.retrieval(upload, "GET"),
                t.append(upload, at: Int64(t.partSize), complete: false, .bytes(t.bytes(t.partSize, from: t.partSize))),
                t.cancellation(upload),
            ]
            for request in requests {
                try t.expect(
                    t.exchangeByOther(request, with: upload), isOneOf: [401, 403, 404],
                    "to \(request.method) by another principal")
            }
            try t.expectState(of: upload, offset: Int64(t.partSize))
        },
        Case(
            "13/other-cannot-finish", .should, "13",
            "Another principal cannot complete an upload.", covers: "SEC-05",
            needs: ["4.2/create-part"]
        ) { t in
            try t.requireOtherPrincipal()
            let upload = try t.newUpload(t.partSize)
            let request = t.append(upload, at: Int64(t.partSize), complete: true, .bytes([]))
            try t.expect(
                t.exchangeByOther(request, with: upload), isOneOf: [401, 403, 404],
                "to a completing append by another principal")
            try t.expectState(of: upload, offset: Int64(t.partSize))
            try t.expectSuccess(t.exchange(request, with: upload), "to a completing append by the creator")
        },
        Case(
            "13/foreign-hidden", .should, "13",
            "The responses do not reveal whether an upload of another principal exists.", covers: "SEC-16",
            needs: ["13/other-principal"]
        ) { t in
            try t.requireOtherPrincipal()
            let upload = try t.newUpload(t.partSize)
            let unknown = upload.withOtherName
            for method in ["HEAD", "PATCH", "DELETE"] {
                func answer(_ upload: Upload) throws -> Response {
                    let request =
                        switch method {
                        case "PATCH": t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize)))
                        case "DELETE": t.cancellation(upload)
                        default: t.retrieval(upload)
                        }
                    return try t.exchangeByOther(request, with: upload)
                }
                let (foreign, none) = (try answer(upload), try answer(unknown))
                try t.expect(
                    Self.comparableParts(of: foreign) == Self.comparableParts(of: none),
                    "the same response to \(method) as for an unknown upload: \(none.summary)", foreign.summary)
            }
            try t.expectState(of: upload, offset: Int64(t.partSize))
        },
    ]

    /// Returns the parts of a refusal that must be the same for an upload of another principal and for an unknown upload.
    private static func comparableParts(of response: Response) -> [String] {
        let names = Set(response.fields.map { $0.name.lowercased() }).subtracting(["date"]).sorted()
        let problem = ProblemDocument(response.content)
        return ["\(response.status)", problem?.type ?? "", names.joined(separator: " ")]
    }
}

extension Upload {
    /// Returns an upload whose URL has the same form as that of an existing upload. It does not exist on the server.
    var withOtherName: Upload {
        var target = Array(endpoint.target)
        for index in target.indices.reversed() where target[index].isHexDigit && target[index].isASCII {
            target[index] = target[index] == "0" ? "1" : "0"
            break
        }
        return Upload(location: String(target), endpoint: endpoint.at(String(target)))
    }
}

extension CaseContext {
    func requireOtherPrincipal() throws {
        if subject.settings.otherFields.isEmpty {
            throw skip("there are no credentials of a second principal: see --other-header")
        }
    }

    /// Sends a request with the credentials of the second principal.
    func exchangeByOther(_ request: Request, with upload: Upload) throws -> Response {
        guard let request = subject.byOther(request) else {
            throw skip("there are no credentials of a second principal")
        }
        return try exchange(request, with: upload)
    }
}
