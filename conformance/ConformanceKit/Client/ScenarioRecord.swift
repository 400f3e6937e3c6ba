/// The requests and results of a client in a scenario.
struct ScenarioRecord: Sendable {
    let scenario: CaseInfo
    let direction: Scenario.Direction
    let size: Int64
    var requests: [ScriptedRequest] = []
    var stage: Stage
    /// The endings of the runs of the command, in order.
    var endings: [CandidateEnding] = []
    /// The output of the command.
    var output = ""
    /// The content of the downloaded file; `nil` if there is no file.
    var file: [UInt8]?
    /// Descriptions of requests that are not valid HTTP.
    var malformed: [String] = []
    /// Descriptions of requests that were followed by more bytes than their Content-Length.
    var surplus: [String] = []
    /// The time from the first interruption to the next byte of content, in nanoseconds.
    var recovery: Int64?
    /// The number of bytes of content that the server sent.
    var contentSent: Int64 = 0

    // MARK: - Results

    func of(_ kinds: ScriptedRequest.Kind...) -> [ScriptedRequest] { requests.filter { kinds.contains($0.kind) } }

    /// Returns the requests after `request`.
    func after(_ request: ScriptedRequest, _ kinds: ScriptedRequest.Kind...) -> [ScriptedRequest] {
        requests.filter { $0.number > request.number && (kinds.isEmpty || kinds.contains($0.kind)) }
    }

    /// Returns whether this run of the client had received an offset of the upload that is at least `offset`.
    func hadReceivedOffset(ofAtLeast offset: Int64, before request: ScriptedRequest) -> Bool {
        acknowledgments(of: request.upload, before: request) { $0.run == request.run }.contains { $0 >= offset }
    }

    /// Returns whether a response had reported, or implied, that the offset of the upload is `offset`.
    func wasReported(_ offset: Int64?, before request: ScriptedRequest) -> Bool {
        acknowledgments(of: request.upload, before: request) { _ in true }.contains { $0 == offset }
    }

    private func acknowledgments(
        of upload: Int?, before request: ScriptedRequest, _ isIncluded: (ScriptedRequest) -> Bool
    ) -> [Int64] {
        requests.filter { $0.number < request.number && $0.upload == upload && isIncluded($0) }.flatMap { other in
            let isAccepted = (200..<300).contains(other.status ?? 0) && [.creation, .append].contains(other.kind)
            return [other.reportedOffset, isAccepted ? other.start + other.received : nil].compactMap { $0 }
        }
    }

    var isSuccessful: Bool { endings.last == .exited(0) }

    /// Whether the target has exactly the complete file.
    var isStored: Bool {
        stage.uploads.hasPlainCopy
            || stage.uploads.uploads.contains { $0.isComplete && $0.isIntact && $0.offset == size }
    }

    /// The representation that is equal to the downloaded file; `nil` if no representation is.
    var edition: Int? {
        guard let file else { return nil }
        return [0, 1].first { DownloadModel.content($0, size) == file }
    }

    /// Whether the downloaded file begins with one representation and ends with the other.
    var isMixture: Bool {
        guard let file, file.count == Int(size), edition == nil else { return false }
        let count = min(file.count, 1000)
        return DownloadModel.content(0, size).prefix(count).elementsEqual(file.prefix(count))
            && DownloadModel.content(1, size).suffix(count).elementsEqual(file.suffix(count))
    }

    /// The number of bytes of content that were transferred.
    var transferred: Int64 {
        direction == .upload ? requests.reduce(0) { $0 + $1.received + $1.discarded } : contentSent
    }

    var traffic: Traffic {
        Traffic(
            size: size, transferred: transferred, requests: requests.count, runs: endings.count,
            recoveryMilliseconds: recovery.map { $0 / 1_000_000 })
    }

    /// Whether the client sent only requests without fields of the draft.
    var hasOnlyPlainRequests: Bool { direction == .upload && requests.allSatisfy { $0.kind == .plain } }

    // MARK: - Verification

    /// Whether ``expectTruthfulStatus()`` succeeds.
    var isTruthful: Bool {
        do { try expectTruthfulStatus() } catch { return false }
        return true
    }

    func expect(_ condition: Bool, _ expected: @autoclosure () -> String, _ seen: @autoclosure () -> String) throws {
        if !condition { throw Unmet(expected(), seen: seen()) }
    }

    /// Expects that the command ended without being killed, and that the file is complete if the exit status is 0.
    func expectTruthfulStatus() throws {
        switch endings.last {
        case .timedOut:
            throw Unmet(
                "the command ends within the time limit", seen: "it was killed after \(requests.count) requests")
        case .repeatedRequests:
            throw Unmet(
                "the command stops", seen: "it repeated its requests: it was killed after \(requests.count) requests")
        default: break
        }
        guard isSuccessful else { return }
        switch direction {
        case .upload:
            try expect(isStored, "no success, because the file is incomplete", "exit status 0, \(arrived)")
        case .download:
            try expect(
                edition != nil, "no success, because the file equals no representation", "exit status 0, \(arrived)")
        }
        if let strange = requests.first(where: { $0.differsAt != nil }) {
            throw Unmet(
                "the bytes of the file at their offsets",
                seen: "different bytes beginning at offset \(strange.differsAt ?? 0), in \(strange.summary)")
        }
    }

    /// Expects that the file arrived completely and that the command succeeded.
    func expectSuccess() throws {
        try expectTruthfulStatus()
        try expect(isSuccessful, "exit status 0 and a complete file", "\(endingText), \(arrived)")
    }

    func expectFailure(_ reason: String) throws {
        try expectTruthfulStatus()
        try expect(!isSuccessful, "an exit status other than 0, because \(reason)", "exit status 0")
    }

    /// Expects that at most `repeated` bytes of content were transferred more than once.
    func expectRepeatedBytes(atMost repeated: Int64) throws {
        try expect(
            transferred <= size + repeated, "at most \(size + repeated) bytes of content",
            "\(transferred) bytes, for a file of \(size)")
    }

    /// Expects that the client waits for a time between the response to this request and its next request.
    func expectPause(after request: ScriptedRequest?, milliseconds: Int64) throws {
        guard let request, let next = after(request).first else { return }
        let waited = (next.arrivedAt - (request.answeredAt ?? request.arrivedAt)) / 1_000_000
        try expect(
            waited >= milliseconds, "\(milliseconds) ms without a request", "\(next.summary) after \(waited) ms")
    }

    func expectNone(_ requests: [ScriptedRequest], _ expected: @autoclosure () -> String) throws {
        if let first = requests.first { throw Unmet(expected(), seen: first.summary) }
    }

    /// Expects that no append to the same upload follows this request.
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
                    + (upload.isIntact ? "" : ", with bytes that differ from the file")
            }
            return offsets.isEmpty ? "nothing arrived" : offsets.joined(separator: "; ")
        case .download:
            return file.map { "a file of \($0.count) bytes\(edition == nil ? " that equals no representation" : "")" }
                ?? "no file"
        }
    }
}
