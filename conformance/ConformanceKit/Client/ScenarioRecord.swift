/// What a client did in a scenario, and what came of it.
struct ScenarioRecord: Sendable {
    let scenario: Question
    let direction: Scenario.Direction
    let size: Int64
    var requests: [ScriptedRequest] = []
    var stage: Stage
    /// How the runs of the command ended, in order.
    var endings: [CandidateEnding] = []
    /// What the command wrote.
    var output = ""
    /// What a download left under its name; nil for nothing.
    var file: [UInt8]?
    /// What could not be read as HTTP.
    var malformed: [String] = []
    /// Requests that were followed by bytes beyond their Content-Length.
    var surplus: [String] = []
    /// Nanoseconds from the first interruption to the next byte of content.
    var recovery: Int64?
    /// Bytes of content that the server sent.
    var contentSent: Int64 = 0

    // MARK: - What happened

    func of(_ kinds: ScriptedRequest.Kind...) -> [ScriptedRequest] { requests.filter { kinds.contains($0.kind) } }

    /// Requests after the one with this number.
    func after(_ request: ScriptedRequest, _ kinds: ScriptedRequest.Kind...) -> [ScriptedRequest] {
        requests.filter { $0.number > request.number && (kinds.isEmpty || kinds.contains($0.kind)) }
    }

    /// Whether the client could report from what this run of it got that the upload of the request was so far.
    func knew(atLeast offset: Int64, before request: ScriptedRequest) -> Bool {
        acknowledgments(of: request.upload, before: request) { $0.run == request.run }.contains { $0 >= offset }
    }

    /// Whether a response said, or meant, that the upload of the request was just so far.
    func wasTold(_ offset: Int64?, before request: ScriptedRequest) -> Bool {
        acknowledgments(of: request.upload, before: request) { _ in true }.contains { $0 == offset }
    }

    private func acknowledgments(
        of upload: Int?, before request: ScriptedRequest, _ isMeant: (ScriptedRequest) -> Bool
    ) -> [Int64] {
        requests.filter { $0.number < request.number && $0.upload == upload && isMeant($0) }.flatMap { other in
            let isTaken = (200..<300).contains(other.status ?? 0) && [.creation, .append].contains(other.kind)
            return [other.toldOffset, isTaken ? other.start + other.received : nil].compactMap { $0 }
        }
    }

    var succeeded: Bool { endings.last == .exited(0) }

    /// Whether the target has the whole file, and nothing but the file.
    var isStored: Bool {
        stage.uploads.hasPlainCopy
            || stage.uploads.uploads.contains { $0.isComplete && $0.isIntact && $0.offset == size }
    }

    /// Which representation a download left, if it is one.
    var edition: Int? {
        guard let file else { return nil }
        return [0, 1].first { DownloadModel.content($0, size) == file }
    }

    /// Whether the download begins as one representation and ends as another. A file may well have its size before
    /// it has its bytes.
    var isMixture: Bool {
        guard let file, file.count == Int(size), edition == nil else { return false }
        let count = min(file.count, 1000)
        return DownloadModel.content(0, size).prefix(count).elementsEqual(file.prefix(count))
            && DownloadModel.content(1, size).suffix(count).elementsEqual(file.suffix(count))
    }

    /// Bytes of content that went over the wire.
    var transferred: Int64 {
        direction == .upload ? requests.reduce(0) { $0 + $1.received + $1.discarded } : contentSent
    }

    var traffic: Traffic {
        Traffic(
            size: size, transferred: transferred, requests: requests.count, runs: endings.count,
            recoveryMilliseconds: recovery.map { $0 / 1_000_000 })
    }

    /// Whether the client uploads as if there were no draft.
    var isUnaware: Bool { direction == .upload && requests.allSatisfy { $0.kind == .plain } }

    // MARK: - Verification

    /// Whether what the command said of its success is true.
    var isHonest: Bool {
        do { try expectHonesty() } catch { return false }
        return true
    }

    func expect(_ condition: Bool, _ expected: @autoclosure () -> String, _ seen: @autoclosure () -> String) throws {
        if !condition { throw Unmet(expected(), seen: seen()) }
    }

    /// The command ends by itself, and says that it succeeded only if it did.
    func expectHonesty() throws {
        switch endings.last {
        case .timedOut:
            throw Unmet(
                "the command ends in time", seen: "it still runs after \(requests.count) requests and is killed")
        case .wentRound:
            throw Unmet(
                "the command stops", seen: "it keeps asking: \(requests.count) requests, then it is killed")
        default: break
        }
        guard succeeded else { return }
        switch direction {
        case .upload:
            try expect(isStored, "no success, as the file has not arrived whole", "exit status 0, \(arrived)")
        case .download:
            try expect(
                edition != nil, "no success, as no representation has arrived whole", "exit status 0, \(arrived)")
        }
        if let strange = requests.first(where: { $0.differsAt != nil }) {
            throw Unmet(
                "the bytes of the file at their offsets",
                seen: "other bytes from \(strange.differsAt ?? 0) on, in \(strange.summary)")
        }
    }

    /// The whole file arrives, and the command says so.
    func expectSuccess() throws {
        try expectHonesty()
        try expect(succeeded, "exit status 0, with the file arrived", "\(endingText), \(arrived)")
    }

    func expectFailure(_ reason: String) throws {
        try expectHonesty()
        try expect(!succeeded, "another exit status than 0: \(reason)", "exit status 0")
    }

    /// No more bytes of content went over the wire than the file has, and those that were lost.
    func expectThrift(_ lost: Int64) throws {
        try expect(
            transferred <= size + lost, "at most \(size + lost) bytes of content",
            "\(transferred) bytes, for a file of \(size)")
    }

    /// So much time passes between the answer to this request and the next one.
    func expectPause(after request: ScriptedRequest?, milliseconds: Int64) throws {
        guard let request, let next = after(request).first else { return }
        let waited = (next.arrivedAt - (request.answeredAt ?? request.arrivedAt)) / 1_000_000
        try expect(
            waited >= milliseconds, "\(milliseconds) ms without a request", "\(next.summary) after \(waited) ms")
    }

    func expectNone(_ requests: [ScriptedRequest], _ expected: @autoclosure () -> String) throws {
        if let first = requests.first { throw Unmet(expected(), seen: first.summary) }
    }

    /// Nothing is appended any more to the upload that the request was about.
    func expectNoAppend(after request: ScriptedRequest, _ expected: @autoclosure () -> String) throws {
        try expectNone(after(request, .append).filter { $0.upload == request.upload }, expected())
    }

    func skip(_ reason: String) -> NotOffered { NotOffered(reason) }

    var endingText: String { endings.map(\.description).joined(separator: ", then ") }

    private var arrived: String {
        switch direction {
        case .upload:
            let offsets = stage.uploads.uploads.map { upload in
                "\(upload.offset) of \(size) bytes\(upload.isComplete ? ", complete" : "")"
                    + (upload.isIntact ? "" : ", with other bytes than the file's")
            }
            return offsets.isEmpty ? "nothing arrived" : offsets.joined(separator: "; ")
        case .download:
            return file.map { "a file of \($0.count) bytes\(edition == nil ? " that is no representation" : "")" }
                ?? "no file"
        }
    }
}
