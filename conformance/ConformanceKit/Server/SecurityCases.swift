/// Section 13: security considerations, and CORS.
enum SecurityCases {
    static let all: [Case] = [
        Case(
            "13/unguessable", .should, "13", "The URI of an upload cannot be guessed.", covers: "SEC-01 CRE-25",
            needs: ["4.2/distinct"]
        ) { t in
            var names: [[UInt8]] = []
            for _ in 0..<32 { names.append(Array(try t.newUpload().endpoint.target.utf8)) }
            try t.expect(Set(names).count == names.count, "32 different URIs", "\(Set(names).count)")
            // A position at which all URIs have the same character is not random. The number of bits of a random position
            // depends on the number of different characters in the random positions.
            let bits = Self.bits(of: names)
            try t.expect(bits >= 100, "128 random bits", "\(bits) bits in \(String(decoding: names[0], as: UTF8.self))")
        },
        Case(
            "13/no-information", .must, "13", "The URI of an upload does not contain the name of its target or file.",
            covers: "SEC-03", needs: ["4.2/create-empty"]
        ) { t in
            let request = t.creation(complete: false, .bytes([]))
                .with("Content-Disposition", "inline; filename=\"conformance-secret.bin\"")
            let response = try t.exchange(request)
            try t.expectSuccess(response, "to a creation with a file name")
            let upload = try t.upload(from: response, to: request)
            let name = request.target.split(separator: "/").last.map(String.init) ?? ""
            for secret in ["conformance-secret", name] where secret.count > 8 {
                try t.expect(!upload.endpoint.target.contains(secret), "a URI without '\(secret)'", upload.location)
            }
        },
        Case(
            "13/no-traversal", .must, "13", "Path traversal in the URI of an upload is refused.", covers: "SEC-14",
            needs: ["4.2/create-empty"]
        ) { t in
            let target = try t.newUpload().endpoint.target
            let directory = target[...(target.lastIndex(of: "/") ?? target.startIndex)]
            for end in ["..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "../../../etc/passwd", "%00"] {
                let request = Request("GET", directory + end, t.profile.versionFields + t.subject.extraFields)
                let response = try t.exchange(request)
                try t.expect(!response.isSuccessful, "a refusal of \(end)", response.summary)
            }
        },
        Case(
            "13/file-names", .must, "13", "A file name that a client proposes cannot leave the collection.",
            covers: "SEC-04 SEC-18", needs: ["4.2/complete"]
        ) { t in
            let names = [
                "filename=\"../../../../tmp/conformance-escape\"", "filename=\"..\\\\..\\\\conformance-escape\"",
                "filename*=UTF-8''..%2f..%2fconformance-escape", "filename=\"/etc/conformance-escape\"",
                "filename=\"CON\"", "filename=\"\(String(repeating: "x", count: 5000))\"",
                "filename*=UTF-8''a%0d%0aX-Test:b",
            ]
            for name in names {
                let request = t.creation(complete: true, .bytes(t.bytes(t.partSize)))
                    .with("Content-Disposition", "inline; \(name)")
                let response = try t.exchange(request)
                try t.expect(response.status < 500, "a file with a safe name, or a refusal", response.summary)
                try t.expect(!response.fields.contains("X-Test"), "no field X-Test", "X-Test from \(name)")
                for field in ["Location", "Content-Location"] {
                    let place = (response.fields[field] ?? "").lowercased()
                    try t.expect(
                        !place.contains("..") && !place.contains("%2f") && !place.contains("/etc/"),
                        "a \(field) inside the collection", place)
                }
            }
        },
        Case(
            "cors/preflight", .should, "Fetch",
            "The responses to preflights of creations and appends allow the methods and fields of the draft.",
            covers: "XCO-01 VER-27", needs: ["4.2/create-empty"]
        ) { t in
            func preflight(_ endpoint: Endpoint, _ method: String, _ names: [String]) throws -> Response {
                let fields = [
                    ("Origin", "https://conformance.example"), ("Access-Control-Request-Method", method),
                    ("Access-Control-Request-Headers", names.joined(separator: ",")),
                ]
                return try t.exchange(Request("OPTIONS", endpoint.target, fields), at: endpoint)
            }
            let names = ["content-type", "upload-complete", "upload-draft-interop-version", "upload-length"]
            let upload = try t.newUpload().endpoint
            guard try preflight(upload, "PATCH", names).fields.contains("Access-Control-Allow-Origin") else {
                throw t.skip("the server allows no other origins")
            }
            let target = t.subject.endpoint.at(t.subject.newTarget())
            for (endpoint, method, names) in [
                (upload, "PATCH", names + ["upload-offset"]), (target, t.subject.method, names),
            ] {
                let response = try preflight(endpoint, method, names)
                try t.expect(
                    response.fields.contains("Access-Control-Allow-Origin"),
                    "Access-Control-Allow-Origin for \(method)", response.summary)
                let methods = response.list("Access-Control-Allow-Methods")
                // POST is a CORS-safelisted method, which needs no permission.
                try t.expect(
                    method == "POST" || methods.contains("*") || methods.contains(method.lowercased()),
                    "\(method) in Access-Control-Allow-Methods", methods.joined(separator: ", "))
                let allowed = response.list("Access-Control-Allow-Headers")
                for name in names where !allowed.contains("*") {
                    try t.expect(
                        allowed.contains(name), "\(name) in Access-Control-Allow-Headers",
                        allowed.joined(separator: ", "))
                }
            }
        },
        Case(
            "cors/exposure", .should, "Fetch",
            "Every response, including a refusal, exposes the fields of the draft to scripts of other origins.",
            covers: "XCO-02",
            needs: ["cors/preflight"]
        ) { t in
            func exchange(_ request: Request, with upload: Upload? = nil) throws -> Response {
                try t.exchange(request.with("Origin", "https://conformance.example"), at: upload?.endpoint)
            }
            let creation = t.creation(complete: false, .bytes([]))
            let created = try exchange(creation)
            let upload = try t.upload(from: created, to: creation)
            let unknown = try t.unknownUpload()
            // A page continues an upload with the fields of a refusal, too.
            for response in [
                created, try exchange(t.retrieval(upload), with: upload),
                try exchange(t.append(upload, at: 9, complete: true, .bytes(t.bytes(t.partSize))), with: upload),
                try exchange(t.append(upload, at: 0, complete: true, .bytes([])), with: upload),
                try exchange(t.retrieval(unknown), with: unknown), try exchange(t.cancellation(upload), with: upload),
            ] {
                try t.expect(
                    response.fields.contains("Access-Control-Allow-Origin"), "Access-Control-Allow-Origin",
                    response.summary)
                let exposed = response.list("Access-Control-Expose-Headers")
                for name in ["location", "upload-offset", "upload-complete", "upload-length", "upload-limit"]
                where !exposed.contains("*") {
                    try t.expect(
                        exposed.contains(name), "\(name) in Access-Control-Expose-Headers",
                        exposed.joined(separator: ", "))
                }
            }
        },
    ]

    /// Estimates the number of random bits in names of the same form.
    private static func bits(of names: [[UInt8]]) -> Int {
        guard let shortest = names.map(\.count).min() else { return 0 }
        let places = (0..<shortest).map { place in Set(names.map { $0[place] }) }
        let alphabet = places.filter { $0.count > 1 }.reduce(into: Set<UInt8>()) { $0.formUnion($1) }
        let size = max(2, alphabet.count)
        let bitsEach = size <= 10 ? 3 : size <= 16 ? 4 : size <= 36 ? 5 : 6
        // The positions of a counter or a clock have few different values and do not count.
        return places.count { $0.count >= min(8, size / 2) } * bitsEach
    }
}
