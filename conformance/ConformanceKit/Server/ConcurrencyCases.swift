/// Section 4.6: several requests for one upload.
enum ConcurrencyCases {
    static let all: [Case] = [
        Case(
            "4.6/not-stuck", .must, "4.6",
            "An append whose client stopped sending does not delay a retrieval of the offset.",
            covers: "CON-07", needs: ["4.4/append"]
        ) { t in
            let (connection, upload) = try t.stalledAppend()
            let offset = try t.state(of: upload).offset
            try t.expect(offset <= t.partSize, "an offset of \(t.partSize) at most", "\(offset)")
            connection.close()
        },
        Case(
            "4.6/retrieval-ends-append", .should, "4.6", "An offset retrieval ends a running append.",
            covers: "CON-01", needs: ["4.6/not-stuck"], ranks: 8...9
        ) { t in
            let (connection, upload) = try t.stalledAppend()
            _ = try t.state(of: upload)
            let ended = try connection.awaitEnding() != nil
            try t.expect(ended, "the end of the append's connection", "timeout")
        },
        Case(
            "4.6/retrieval-ends-creation", .should, "4.6", "An offset retrieval ends a running creation.",
            covers: "CON-01", needs: ["4.2/usable-at-once"], ranks: 8...9
        ) { t in
            let (connection, upload, _) = try t.announcedUpload(sending: t.partSize, of: t.partSize * 2)
            let state = try t.state(of: upload)
            try t.expect(state.isComplete == false, "an incomplete upload", state.response.summary)
            let ended = try connection.awaitEnding() != nil
            try t.expect(ended, "the end of the creation's connection", "timeout")
        },
        Case(
            "4.6/offset-usable", .must, "4.6",
            "An append can use the offset that was reported while another append was stuck.",
            covers: "OFF-11 CON-08", needs: ["4.6/not-stuck"]
        ) { t in
            for _ in 0..<5 {
                let (connection, upload) = try t.stalledAppend()
                let offset = try t.state(of: upload).offset
                let content = Request.Content.bytes(t.bytes(t.partSize, from: Int(offset)))
                let response = try t.appending(upload, at: offset, complete: false, content)
                try t.expectSuccess(response, "to an append at the offset reported")
                try t.expectState(of: upload, offset: offset + Int64(t.partSize))
                connection.close()
            }
        },
        Case(
            "4.6/late-bytes", .must, "4.6",
            "If an append has been replaced by a newer one, bytes that it still sends are not added to the upload.",
            covers: "CON-04 CON-02", needs: ["4.6/offset-usable"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(0)
            let connection = try t.connect(to: upload.endpoint)
            try t.begin(t.append(upload, at: 0, complete: false, .declared(Int64(t.partSize * 4))), on: connection)
            try connection.send(t.bytes(t.partSize))
            let offset = Int(try t.state(of: upload).offset)
            let second = try t.connect(to: upload.endpoint)
            let append = t.append(upload, at: Int64(offset), complete: false, .declared(Int64(t.partSize * 2)))
            try t.begin(append, on: second)
            try second.send(t.bytes(t.partSize, from: offset))
            // The first append sends different bytes for the same offsets.
            _ = try? connection.send([UInt8](repeating: UInt8(ascii: "!"), count: t.partSize * 3))
            try second.send(t.bytes(t.partSize, from: offset + t.partSize))
            try t.expectSuccess(second.readResponse(), "to the append at the offset reported")
            try t.expectState(of: upload, offset: Int64(offset + t.partSize * 2))
            let finished = try t.appending(upload, at: Int64(offset + t.partSize * 2), complete: true, .bytes([]))
            try t.expectSuccess(finished, "from the target")
            try t.expectFile(of: finished, to: request, t.bytes(offset + t.partSize * 2))
        },
        Case(
            "4.6/append-supersedes", .should, "4.6", "A new append is not delayed by an append that is stuck.",
            covers: "CON-02", needs: ["4.6/not-stuck"], ranks: 8...9
        ) { t in
            let (connection, upload) = try t.stalledAppend()
            let response = try t.appending(
                upload, at: Int64(t.partSize), complete: false, .bytes(t.bytes(t.partSize, from: t.partSize)))
            try t.expect(
                response.isSuccessful || response.status == 409, "2xx, or 409 with the offset", response.summary)
            connection.close()
        },
        Case(
            "4.6/race", .must, "4.6", "The bytes of concurrent appends at the same offset are not mixed.",
            covers: "CON-03", needs: ["4.4/finish"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(0)
            let count = t.partSize * 8
            let racers = try (0..<6).map { index -> (RawConnection, [UInt8]) in
                (try t.connect(to: upload.endpoint), [UInt8](repeating: UInt8(ascii: "A") + UInt8(index), count: count))
            }
            for (index, racer) in racers.enumerated() {
                let append = t.append(upload, at: 0, complete: false, .declared(Int64(count)))
                // The first three appends are running before the others begin. The others begin at the same time.
                if index < 3 { try t.begin(append, on: racer.0) } else { try racer.0.send(append) }
            }
            for start in stride(from: 0, to: count, by: t.partSize) {
                for (connection, content) in racers {
                    _ = try? connection.send(Array(content[start..<(start + t.partSize)]))
                }
            }
            let winners = racers.enumerated().filter { (try? $0.element.0.readResponse().isSuccessful) == true }
            try t.expect(winners.count <= 1, "at most one success", "\(winners.count) successes")
            let offset = try t.state(of: upload).offset
            try t.expect(offset <= count, "an offset of \(count) at most", "\(offset)")
            let finished = try t.appending(upload, at: offset, complete: true, .bytes([]))
            try t.expectSuccess(finished, "to a finishing append at the offset reported")
            guard let fileURL = t.subject.fileURL(of: finished, to: request, in: t.profile) else { return }
            let file = try t.download(fileURL).content
            try t.expect(Set(file).count <= 1, "the bytes of one append", TranscriptText.escaped(file.prefix(100)))
            if let winner = winners.first {
                try t.expect(
                    file == racers[winner.offset].1, "the bytes of the append that succeeded",
                    TranscriptText.escaped(file.prefix(100)))
            }
        },
        Case(
            "4.6/other-upload", .must, "4.6", "A request for one upload does not affect an append to another.",
            covers: "CON-10",
            needs: ["4.4/append"]
        ) { t in
            let (connection, _) = try t.stalledAppend()
            let other = try t.newUpload(t.partSize)
            try t.expectState(of: other, offset: Int64(t.partSize))
            try connection.send(t.bytes(t.partSize, from: t.partSize))
            try t.expectSuccess(connection.readResponse(), "to the append that was running")
        },
        Case(
            "4.6/finish-race", .must, "4.4.2", "Two concurrent completing appends complete the upload once.",
            covers: "APP-28", needs: ["4.4/finish-empty"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(t.partSize)
            let connections = try (0..<2).map { _ in try t.connect(to: upload.endpoint) }
            for connection in connections {
                try connection.send(t.append(upload, at: Int64(t.partSize), complete: true, .bytes([])))
            }
            let responses = connections.compactMap { try? $0.readResponse() }
            let successes = responses.filter(\.isSuccessful)
            let first = try t.require(successes.first, "a success", responses.map(\.summary).joined(separator: "; "))
            try t.expect(
                successes.allSatisfy { $0.location == first.location && $0.content == first.content },
                "the same answer for both", successes.map(\.summary).joined(separator: "; "))
            try t.expectFile(of: first, to: request, t.bytes(t.partSize))
        },
        Case(
            "4.6/cancel-race", .must, "4.6", "An upload that was canceled during an append does not exist afterwards.",
            covers: "CAN-06", needs: ["4.5/cancel"]
        ) { t in
            for _ in 0..<10 {
                let upload = try t.newUpload()
                let first = try t.connect(to: upload.endpoint)
                let second = try t.connect(to: upload.endpoint)
                try first.send(t.append(upload, at: 0, complete: false, .bytes(t.bytes(t.partSize))))
                try second.send(t.cancellation(upload))
                _ = try? first.readResponse()
                let canceled = try second.readResponse()
                guard canceled.isSuccessful else { continue }
                try t.expectGone(upload, "the upload was canceled")
            }
        },
    ]
}
