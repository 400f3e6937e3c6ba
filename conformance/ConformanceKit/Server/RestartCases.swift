/// Durability: restarts of the server after it was killed.
enum RestartCases {
    static let all: [Case] = [
        Case(
            "restart/offset-kept", .must, "4.1.1",
            "After the server was killed, the offset is not lower than a reported one, or the upload does not exist.",
            covers: "OFF-10 OFF-09", needs: ["4.4/append"]
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
            try t.setup {
                try t.expectSuccess(
                    t.appending(upload, at: Int64(t.partSize), complete: false, content), "to an append")
            }
            try t.restart()
            let response = try t.exchange(t.retrieval(upload), with: upload)
            if [404, 410].contains(response.status) { return t.note("uploads do not survive a restart") }
            try t.expectSuccess(response, "to HEAD, or 404")
            try t.expect(
                response.integer("Upload-Offset") == Int64(t.partSize * 2), "Upload-Offset: \(t.partSize * 2)",
                response.summary)
        },
        Case(
            "restart/survives", .should, "4", "An upload can be continued after the server was killed.",
            covers: "OFF-10",
            needs: ["restart/offset-kept"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(t.partSize)
            try t.restart()
            try t.expectState(of: upload, offset: Int64(t.partSize))
            let content = Request.Content.bytes(t.bytes(t.partSize, from: t.partSize))
            let response = try t.appending(upload, at: Int64(t.partSize), complete: true, content)
            try t.expectSuccess(response, "from the target")
            try t.expectFile(of: response, to: request, t.bytes(t.partSize * 2))
        },
        Case(
            "restart/progress-kept", .must, "4.1.1",
            "After the server was killed, the offset is not lower than one that a 104 reported.",
            covers: "OFF-10 INT-08 OFF-18", needs: ["4.4/progress", "restart/offset-kept"], ranks: 8...9
        ) { t in
            try t.requireControl()
            let (connection, upload) = try t.slowAppend()
            guard let reported = try t.sendSlowContent(on: connection) else {
                throw t.skip("the server reports no progress")
            }
            try t.restart()
            let response = try t.exchange(t.retrieval(upload), with: upload)
            if [404, 410].contains(response.status) { return t.note("uploads do not survive a restart") }
            let offset = try t.require(response.integer("Upload-Offset"), "Upload-Offset", response.summary)
            try t.expect(offset >= reported, "an offset of \(reported) or more", "\(offset)")
        },
        Case(
            "restart/interrupted", .must, "4.1.1",
            "An upload can be continued if the server was killed during an append.",
            covers: "APP-13 H11-25 SEC-17", needs: ["restart/offset-kept"]
        ) { t in
            try t.requireControl()
            let (_, upload) = try t.stalledAppend()
            try t.restart()
            let response = try t.exchange(t.retrieval(upload), with: upload)
            if [404, 410].contains(response.status) { return t.note("uploads do not survive a restart") }
            let offset = try t.require(response.integer("Upload-Offset"), "Upload-Offset", response.summary)
            try t.expect(offset <= t.partSize, "an offset of \(t.partSize) at most", "\(offset)")
            try t.expect(t.profile.isComplete(response) == false, "an incomplete upload", response.summary)
            let content = Request.Content.bytes(t.bytes(t.partSize, from: Int(offset)))
            try t.expectSuccess(
                t.appending(upload, at: offset, complete: false, content), "to an append at the offset reported")
        },
        Case(
            "restart/disk-full", .must, "4.1.1",
            "If the disk is full, bytes that were not stored are not acknowledged, and acknowledged bytes are kept.",
            covers: "SEC-17", needs: ["4.4/append"]
        ) { t in
            let size = try t.requireSmallDisk()
            let upload = try t.newUpload(t.partSize)
            var offset = Int64(t.partSize)
            var isRefused = false
            // The last append exceeds the space on the disk.
            for _ in 0..<16 where !isRefused {
                let content = t.bytes(Int(clamping: size / 4), from: Int(offset))
                // The connection may also end without a response.
                guard let response = try? t.appending(upload, at: offset, complete: false, .bytes(content)) else {
                    isRefused = true
                    break
                }
                if response.isSuccessful {
                    offset += Int64(content.count)
                    if let reported = response.integer("Upload-Offset") {
                        try t.expect(reported == offset, "Upload-Offset: \(offset)", response.summary)
                    }
                } else {
                    isRefused = true
                    t.note("the response when the disk is full: \(response.summary)")
                }
            }
            try t.expect(
                isRefused, "a refusal when the disk of \(size) bytes is full", "\(offset) bytes acknowledged")
            let reported = try t.expectDiskKeeps(upload, offset: offset, atMost: size)
            try t.restart()
            try t.expectDiskKeeps(upload, offset: reported, atMost: size)
        },
        Case(
            "restart/finished", .must, "4.1.2", "A complete upload is still complete after a restart.",
            covers: "OFF-02 CMP-04",
            needs: ["4.4/finish", "restart/offset-kept"]
        ) { t in
            let (upload, request) = try t.newUploadWithRequest(t.partSize)
            let finished = try t.setup { try t.appending(upload, at: Int64(t.partSize), complete: true, .bytes([])) }
            try t.restart()
            let response = try t.exchange(t.retrieval(upload), with: upload)
            if response.isSuccessful {
                try t.expect(t.profile.isComplete(response) == true, "a complete upload", response.summary)
            }
            try t.expectFile(of: finished, to: request, t.bytes(t.partSize))
        },
        Case(
            "restart/canceled", .must, "4.5", "A canceled upload does not exist after a restart.", covers: "CAN-06",
            needs: ["4.5/cancel", "restart/offset-kept"]
        ) { t in
            let upload = try t.newUpload(t.partSize)
            try t.expectCanceled(upload)
            try t.restart()
            try t.expectGone(upload, "the upload was canceled")
        },
        Case(
            "4.1.4/expiry", .must, "4.1.4", "After its lifetime an upload does not exist.",
            covers: "LIM-19 CMP-05 SEC-09", needs: ["4.2/create-part"], ranks: 6...9
        ) { t in
            let upload = try t.newUpload(t.partSize)
            let limits = try t.state(of: upload).response.limits ?? [:]
            guard let life = limits["max-age"] ?? limits["expires"] else { throw t.skip("there is no max-age") }
            guard life <= 10 else { throw t.skip("a max-age of \(life) s is too long to wait for; set 10 s or less") }
            Deadline.pause(.seconds(life + 1))
            try t.expectGone(upload, "its lifetime is over")
        },
    ]
}

extension CaseContext {
    func requireControl() throws {
        if subject.control == nil { throw skip("the harness did not start the server: see --start") }
    }

    /// Returns the size of the subject's disk. Skips the case if the subject has no disk of its own.
    func requireSmallDisk() throws -> Int64 {
        try requireControl()
        guard let size = subject.control?.diskSize else {
            throw skip("the server has no disk that the harness may fill up: see --disk")
        }
        return size
    }

    /// Expects that the upload has an offset from `offset` to `size`, or does not exist.
    @discardableResult
    func expectDiskKeeps(_ upload: Upload, offset: Int64, atMost size: Int64) throws -> Int64 {
        let response = try exchange(retrieval(upload), with: upload)
        if [404, 410].contains(response.status) {
            note("the upload is gone")
            return 0
        }
        try expectSuccess(response, "to HEAD, or 404")
        let reported = try require(response.integer("Upload-Offset"), "Upload-Offset", response.summary)
        try expect((offset...size).contains(reported), "an offset from \(offset) to \(size)", response.summary)
        try expect(profile.isComplete(response) == false, "an incomplete upload", response.summary)
        return reported
    }

    /// Kills the server with SIGKILL and starts it again.
    func restart() throws {
        try requireControl()
        transcript.note("the harness kills the server and starts it again", on: 0)
        do {
            try subject.control?.kill()
            try subject.control?.start()
        } catch {
            throw SetupFailure(finding: Finding(expected: "a server that restarts", seen: "\(error)"))
        }
    }
}
