/// RFC 9112: connections, pipelining and unread content.
enum ConnectionCases {
    static let all: [Case] = [
        Case(
            "9112/pipelining", .must, "RFC 9112 9.3.2", "Pipelined requests are answered in their order.",
            covers: "H11-16", needs: ["4.4/append"]
        ) { t in
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let append = t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize)))
            let retrieval = t.retrieval(upload)
            connection.expectResponses(to: append, retrieval)
            let authority = upload.endpoint.authority
            try connection.send(
                append.head(authority: authority) + append.encodedContent + retrieval.head(authority: authority))
            try t.expectSuccess(connection.readResponse(), "to the append")
            guard let second = try connection.readResponseUnlessEnded() else {
                throw t.skip("the server closes the connection after each response")
            }
            try t.expectSuccess(second, "to the pipelined HEAD")
            try t.expect(
                second.integer("Upload-Offset") == Int64(t.partSize), "Upload-Offset: \(t.partSize)", second.summary)
        },
        Case(
            "9112/unread-content", .must, "RFC 9112 9.3",
            "The unread content of a refused request is not parsed as a request.",
            covers: "H11-14", needs: ["4.4/offset-mismatch"]
        ) { t in
            let upload = try t.newUpload()
            let victim = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let smuggled = t.cancellation(victim).head(authority: upload.endpoint.authority)
            let content = smuggled + [UInt8](repeating: UInt8(ascii: "\n"), count: 200_000) + smuggled
            let request = t.append(upload, at: 7, complete: false, .bytes(content))
            t.setLastRequest(request, upload.endpoint)
            try connection.send(request)
            // The connection may end before the response arrives. The case 9112/early-refusal tests whether it arrives.
            if let answer = try connection.readResponseUnlessEnded() {
                try t.expect(!answer.isSuccessful, "409 to an append at a wrong offset", answer.summary)
                _ = connection.hasInput(within: .milliseconds(200))
            }
            try t.expectState(of: victim, offset: 0)
        },
        Case(
            "9112/early-refusal", .should, "RFC 9112 9.6", "A client that is still sending can read a refusal.",
            covers: "H11-15", needs: ["4.4/offset-mismatch"]
        ) { t in
            let size = 8 << 20
            guard t.subject.allows(size) else { throw t.skip("the limits of the server are too low for this case") }
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let request = t.append(upload, at: 7, complete: false, .declared(Int64(size)))
            t.setLastRequest(request, upload.endpoint)
            try connection.send(request)
            // This client reads no response while it sends.
            try connection.send(t.bytes(size))
            try t.expect(connection.readResponse(), isOneOf: [409], "to an append at a wrong offset")
        },
        Case(
            "9112/single-bytes", .must, "RFC 9112 2.2",
            "A request that arrives byte by byte is processed like any other.",
            covers: "APP-01", needs: ["4.4/append"]
        ) { t in
            let upload = try t.newUpload()
            let connection = try t.connect(to: upload.endpoint)
            let request = t.append(upload, at: 0, complete: false, .bytes(t.bytes(10)))
            if t.partSize > 10 { throw t.skip("the minimum sizes of the server are too high for this case") }
            t.setLastRequest(request, upload.endpoint)
            connection.expectResponses(to: request)
            try connection.sendByBytes(
                request.head(authority: upload.endpoint.authority) + request.encodedContent)
            try t.expectSuccess(connection.readResponse(), "to an append byte by byte")
            try t.expectState(of: upload, offset: 10)
        },
    ]
}
