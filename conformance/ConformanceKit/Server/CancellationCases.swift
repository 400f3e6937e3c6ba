/// Section 4.5: cancellation of uploads.
enum CancellationCases {
    static let all: [Case] = [
        Case(
            "4.5/cancel", .should, "4.5.2", "After a cancellation requests for the upload get 404 or 410.",
            covers: "CAN-01 APP-24",
            needs: ["4.2/create-part"]
        ) { t in
            let upload = try t.newUpload(t.partSize)
            try t.expectCanceled(upload)
            try t.expectGone(upload, "the upload was canceled")
        },
        Case(
            "4.5/no-content", .must, "4.5.2 of draft -08", "Up to version 7 a cancellation gets 204.",
            covers: "VER-16", needs: ["4.5/cancel"], ranks: 3...7
        ) { t in
            let upload = try t.newUpload()
            let response = try t.exchange(t.cancellation(upload), with: upload)
            if response.status == 405 { throw t.skip("DELETE is not offered") }
            try t.expect(response, isOneOf: [204], "to DELETE")
        },
        Case(
            "4.5/twice", .should, "4.5.2", "A second cancellation gets 404 or 410.", covers: "CAN-05",
            needs: ["4.5/cancel"]
        ) { t in
            let upload = try t.newUpload()
            try t.expectCanceled(upload)
            let statuses = t.profile.rank <= 6 ? [404] : [404, 410]
            try t.expect(t.exchange(t.cancellation(upload), with: upload), isOneOf: statuses, "to a second DELETE")
        },
        Case(
            "4.5/stops-append", .should, "4.5.2", "A cancellation ends a running append.", covers: "CAN-03",
            needs: ["4.5/cancel", "4.4/append"], ranks: 8...9
        ) { t in
            let (connection, upload) = try t.stalledAppend()
            try t.expectCanceled(upload)
            let ended = try connection.awaitEnding() != nil
            try t.expect(ended, "the end of the append's connection", "timeout")
            try t.expectGone(upload, "the upload was canceled")
        },
        Case(
            "4.5/stays-gone", .must, "4.5", "Bytes of a canceled append that arrive later do not restore the upload.",
            covers: "CAN-06 CAN-07", needs: ["4.5/cancel", "4.4/append"]
        ) { t in
            let (connection, upload) = try t.stalledAppend()
            try t.expectCanceled(upload)
            _ = try? connection.send(t.bytes(t.partSize, from: t.partSize))
            if connection.hasInput(within: .milliseconds(200)), connection.ending == nil,
                let response = try? connection.readResponse()
            {
                try t.expect(
                    !response.isSuccessful, "a response other than 2xx to the canceled append", response.summary)
            }
            try t.expectGone(upload, "the upload was canceled")
        },
    ]
}

extension CaseContext {
    func expectCanceled(_ upload: Upload) throws {
        let response = try exchange(cancellation(upload), with: upload)
        if response.status == 405 || response.status == 501 { throw skip("DELETE is not offered") }
        try expectSuccess(response, "to DELETE")
    }

    /// Sends the head of a request with `Expect: 100-continue`, and waits for a response, at most two seconds. The
    /// response, usually 100, shows that the subject processes the request.
    func begin(_ request: Request, on connection: RawConnection) throws {
        setLastRequest(request, connection.endpoint)
        try connection.send(request.with("Expect", "100-continue"))
        _ = try connection.awaitHead(within: min(.seconds(2), subject.timeout))
    }

    /// Begins an append of twice ``partSize`` bytes to an empty upload, and sends only the first half.
    func stalledAppend() throws -> (connection: RawConnection, upload: Upload) {
        let upload = try newUpload()
        return try setup {
            let connection = try connect(to: upload.endpoint)
            try begin(append(upload, at: 0, complete: false, .declared(Int64(partSize * 2))), on: connection)
            try connection.send(bytes(partSize))
            return (connection, upload)
        }
    }
}
