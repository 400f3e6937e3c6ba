import HTTPSemantics
import SystemCalls

extension ProxyRun {
    /// Checks whether a request reaches the upstream, and whether the response reaches the client.
    func reach() throws -> Answer {
        let client = try bench.connect()
        try client.send(bench.request("GET"))
        // All other checks depend on this one, and a proxy may start slowly.
        guard let upstream = bench.awaitRequest(within: max(bench.timeout, .seconds(10))) else {
            var received = "no response"
            if try client.awaitHead(within: .milliseconds(100)) {
                let status = try client.readResponse().status
                received = "the proxy answered \(status) itself"
            }
            return (.bad, "\(received); does the proxy forward to the port of --upstream-port?")
        }
        upstream.answer(200, [], Array("reached".utf8))
        let response = try client.readResponse()
        behavior.isOldHTTP = upstream.head.version < .http11
        guard response.status == 200, response.text == "reached" else {
            return (.bad, "the response arrived as \(response.summary)")
        }
        return behavior.isOldHTTP
            ? (.poor, "with HTTP/1.0, for which servers send no 104") : (.good, "with \(upstream.head.version)")
    }

    /// Checks whether the methods of the draft are forwarded.
    func methods() throws -> Answer {
        var refused: [String] = []
        for method in ["HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"] {
            bench.begin()
            let client = try bench.connect()
            let hasContent = ["PUT", "POST", "PATCH"].contains(method)
            try client.send(bench.request(method, [], hasContent ? .bytes(Array("content".utf8)) : .none))
            guard let upstream = bench.awaitRequest(), upstream.head.method.rawValue == method else {
                refused.append(method)
                continue
            }
            upstream.answer(204)
            if try client.readResponse().status != 204 { refused.append(method) }
        }
        behavior.refusedMethods = refused
        return refused.isEmpty ? (.good, "all are forwarded") : (.bad, "refused: \(refused.joined(separator: ", "))")
    }

    /// Checks which fields of a request arrive unchanged, and which are added.
    func requestFields() throws -> Answer {
        let sent = [
            ("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?0"), ("Upload-Offset", "0"),
            ("Upload-Length", "999999999999999"), ("Content-Type", "application/partial-upload"),
            ("Repr-Digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"),
            ("Want-Repr-Digest", "sha-256=1"),
            ("Content-Disposition", "inline; filename=\"a b.bin\""), ("If-None-Match", "*"),
        ]
        let client = try bench.connect()
        try client.send(bench.request("PATCH", sent, .bytes(Array("content".utf8))))
        guard let upstream = bench.awaitRequest() else { return (.bad, "the request does not arrive") }
        let arrived = upstream.head.fields
        upstream.answer(204)
        _ = try client.readResponse()
        let changed = sent.filter { arrived.values($0.0) != [$0.1] }.map(\.0)
        behavior.changedFields += changed
        let forwarding = ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via"]
        let added = forwarding.filter(arrived.contains)
        let keepsHost = arrived["Host"] == bench.endpoint.authority
        let passesHost =
            keepsHost || arrived.contains("X-Forwarded-Host") || arrived["Forwarded"]?.contains("host=") == true
        let passesScheme =
            bench.endpoint.trust == nil || arrived["X-Forwarded-Proto"] == "https"
            || arrived["Forwarded"]?.lowercased().contains("proto=https") == true
        behavior.isOriginPassed = passesHost && passesScheme
        var parts = changed.isEmpty ? [] : ["changed or lost: \(changed.joined(separator: ", "))"]
        parts.append(keepsHost ? "Host unchanged" : "Host changed to \(arrived["Host"] ?? "nothing")")
        parts.append(added.isEmpty ? "no forwarding fields" : "adds \(added.joined(separator: ", "))")
        if !passesScheme { parts.append("the scheme https is not forwarded") }
        let isGood = changed.isEmpty && behavior.isOriginPassed == true
        return (isGood ? .good : changed.isEmpty ? .poor : .bad, parts.joined(separator: "; "))
    }

    /// Checks which fields of a response arrive unchanged.
    func responseFields() throws -> Answer {
        let client = try bench.connect()
        try client.send(bench.creation(.bytes(Array("content".utf8))))
        guard let upstream = bench.awaitRequest() else { return (.bad, "the request does not arrive") }
        let host = upstream.head.fields["Host"] ?? "localhost"
        let sent = [
            ("Location", "http://\(host)/uploads/0123456789abcdef"), ("Upload-Offset", "7"),
            ("Upload-Complete", "?0"), ("Upload-Limit", "max-size=1000000, max-age=3600"),
            ("Content-Type", "application/problem+json"), ("Cache-Control", "no-store"), ("ETag", "\"x\""),
            ("Accept-Ranges", "bytes"), ("Repr-Digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"),
        ]
        upstream.answer(201, sent, Array("{\"status\":201}".utf8))
        let response = try client.readResponse()
        let changed = sent.dropFirst().filter { response.fields.values($0.0) != [$0.1] }.map(\.0)
        behavior.changedFields += changed
        let location = response.fields["Location"]
        var parts = changed.isEmpty ? [] : ["changed or lost: \(changed.joined(separator: ", "))"]
        if let location {
            parts.append(location == sent[0].1 ? "Location unchanged" : "Location changed to \(location)")
        } else {
            behavior.changedFields.append("Location")
            parts.append("Location is lost")
        }
        if response.status != 201 { parts.append("201 is changed to \(response.status)") }
        let isGood = changed.isEmpty && location != nil && response.status == 201
        return (isGood ? .good : .bad, parts.joined(separator: "; "))
    }

    /// Checks whether downloads can be resumed.
    func ranges() throws -> Answer {
        let sent = [("Range", "bytes=100-199"), ("If-Range", "\"x\"")]
        let client = try bench.connect()
        try client.send(bench.request("GET", sent))
        guard let upstream = bench.awaitRequest() else { return (.bad, "the request does not arrive") }
        let lost = sent.filter { upstream.head.fields.values($0.0) != [$0.1] }.map(\.0)
        let content = TestContent.bytes(100, from: 100)
        upstream.answer(
            206, [("Content-Range", "bytes 100-199/1000"), ("ETag", "\"x\""), ("Accept-Ranges", "bytes")], content)
        let response = try client.readResponse()
        let isComplete =
            response.status == 206 && response.fields["Content-Range"] == "bytes 100-199/1000"
            && response.fields["ETag"] == "\"x\"" && response.content == content
        behavior.isRangePassed = lost.isEmpty && isComplete
        if !lost.isEmpty { return (.poor, "lost: \(lost.joined(separator: ", "))") }
        return isComplete
            ? (.good, "forwarded, and the 206 arrives unchanged") : (.poor, "the 206 arrived as \(response.summary)")
    }

    /// Determines the size of the largest header section that the proxy forwards.
    func largeHead() throws -> Answer {
        var longest = 0
        for size in [4, 7, 15, 31, 63] {
            bench.begin()
            let lines = (0..<size).map { ("X-Line-\($0)", String(repeating: "x", count: 1000)) }
            let client = try bench.connect()
            try client.send(bench.request("GET", lines))
            guard let upstream = bench.awaitRequest(within: .milliseconds(bench.timeout.milliseconds / 2)),
                upstream.head.fields.count >= size
            else { break }
            upstream.answer(204)
            guard try client.readResponse().status == 204 else { break }
            longest = size
        }
        return longest == 0
            ? (.poor, "fields of 4 kB are refused")
            : (
                .neutral,
                "fields of \(longest) kB are forwarded\(longest == 63 ? "; larger ones were not checked" : "")"
            )
    }
}
