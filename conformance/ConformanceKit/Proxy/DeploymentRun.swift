import SystemCalls

/// One run of the proxy mode against a server behind its proxies: what of the draft works from outside.
package final class DeploymentRun {
    private let subject: Subject
    private let timeout: Duration
    private let observations = Observations()
    private var behavior = ProxyBehavior()
    private var findings: [ProxyFinding] = []
    private var isWanted = true

    private static let size = 300_000
    private static let part = 100_000

    /// - Throws: ``RunFailure`` where the settings make no sense.
    package init(_ settings: ProxySettings) throws {
        var server = ServerSettings(url: settings.url)
        server.method = settings.method
        server.fields = settings.fields
        server.trust = settings.trust
        server.timeout = max(.seconds(1), settings.timeout * 2)
        guard let endpoint = Endpoint(settings.url, trusting: settings.trust) else {
            throw RunFailure("“\(settings.url)” is no URL of the form http://host[:port]/path or https://…")
        }
        subject = Subject(settings: server, endpoint: endpoint)
        timeout = settings.timeout
    }

    /// Runs everything; `progress` receives each finding as it comes, and returns whether to continue.
    package func run(_ progress: (ProxyFinding) -> Bool = { _ in true }) -> ProxyReport {
        let began = SystemClock.realtimeSeconds()
        let start = SystemClock.monotonicNanoseconds()
        var failure: String?
        do {
            try SubjectProbe(subject: subject, observations: observations).run()
            ask("versions", "Versions of the draft", progress, versions)
            ask("limits", "Limits", progress, limits)
            ask("location", "Location of uploads", progress, location)
            ask("interim", "104 responses", progress, interim)
            ask("body", "Body with a length", progress) { try self.body($0, isChunked: false) }
            ask("body-chunked", "Body without a length", progress) { try self.body($0, isChunked: true) }
            ask("abort", "Client goes away", progress) { try self.abort($0, isChunked: false) }
            ask("abort-chunked", "… in a body without a length", progress) { try self.abort($0, isChunked: true) }
            ask("take-over", "Time to take over", progress, takeOver)
            ask("early-answer", "Answer during a body", progress, earlyAnswer)
            ask("range", "Range and If-Range", progress, ranges)
        } catch let setup as SetupFailure {
            failure = "expected \(setup.finding.expected), seen: \(setup.finding.seen)"
        } catch {
            failure = "\(error)"
        }
        return ProxyReport(
            url: subject.endpoint.url, hasUpstream: false, beganAt: began,
            milliseconds: (SystemClock.monotonicNanoseconds() - start) / 1_000_000, findings: findings,
            verdict: failure == nil ? ProxyVerdict(behavior) : nil, failure: failure)
    }

    private func ask(
        _ id: String, _ title: String, _ progress: (ProxyFinding) -> Bool,
        _ probe: (CaseContext) throws -> ProxyRun.Answer
    ) {
        guard isWanted else { return }
        let context = CaseContext(subject: subject, profile: subject.base, observations: observations)
        let answer: ProxyRun.Answer
        do {
            answer = try probe(context)
        } catch let unmet as Unmet {
            answer = (.bad, "expected \(unmet.finding.expected), seen: \(unmet.finding.seen)")
        } catch let setup as SetupFailure {
            answer = (.bad, "expected \(setup.finding.expected), seen: \(setup.finding.seen)")
        } catch let skipped as NotOffered {
            answer = (.neutral, skipped.reason)
        } catch {
            answer = (.bad, "\(error)")
        }
        context.cancelUploads()
        let finding = ProxyFinding(
            id: id, title: title, grade: answer.grade, answer: answer.text, transcript: context.transcript.entries,
            omittedEvents: context.transcript.omittedEvents)
        findings.append(finding)
        isWanted = progress(finding)
    }

    // MARK: - What is spoken

    private func versions(_ t: CaseContext) throws -> ProxyRun.Answer {
        let words = subject.spoken.map(\.description).sorted().joined(separator: ", ")
        return (.good, subject.announces ? words : "\(words); no 104 reports of more")
    }

    private func limits(_ t: CaseContext) throws -> ProxyRun.Answer {
        if subject.limits.isEmpty { return (.neutral, "OPTIONS reports of none") }
        return (.good, subject.limits.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ", "))
    }

    /// Whether Location leads back through the same door.
    private func location(_ t: CaseContext) throws -> ProxyRun.Answer {
        let upload = try t.newUpload(t.part)
        if upload.endpoint.scheme != subject.endpoint.scheme || upload.endpoint.authority != subject.endpoint.authority
        {
            behavior.tellsOrigin = false
        }
        let response = try t.exchange(t.retrieval(upload), with: upload)
        guard response.isSuccessful else { return (.bad, "\(upload.location) answers \(response.status)") }
        return behavior.tellsOrigin == false
            ? (.poor, "leads elsewhere: \(upload.location)") : (.good, "leads back: \(upload.location)")
    }

    private func interim(_ t: CaseContext) throws -> ProxyRun.Answer {
        let request = t.creation(complete: true, .declared(Int64(Self.part)))
        let connection = try t.connect()
        try connection.send(request)
        let live = try connection.awaitAnnouncement(within: timeout)
        if let live { _ = try? t.upload(at: live.location, of: request, live.summary) }
        let framing = ["Transfer-Encoding", "Content-Length", "Connection"]
        if let live, framing.contains(where: live.fields.contains) {
            behavior.interim = .takenForFinal
            return (.bad, "the first is taken for the final response, what follows for its content")
        }
        try connection.send(t.bytes(Self.part))
        do {
            let response = try connection.readResponse()
            guard response.status < 500 else {
                behavior.interim = .fatal("\(response.status)")
                return (.bad, "the upload ends in \(response.status)")
            }
            if live != nil {
                behavior.interim = .live
                return (.good, "pass while the body is awaited")
            }
            if !response.announcements.isEmpty {
                behavior.interim = .late
                return (.poor, "come only with the final response")
            }
            return (.poor, "none comes: a proxy drops them, or the server sends none")
        } catch {
            behavior.interim = .fatal("\(error)")
            return (.bad, "the upload ends with \(error)")
        }
    }

    // MARK: - Bodies

    /// An append of which a part was sent, and that is still open.
    private func openAppend(
        _ t: CaseContext, isChunked: Bool, complete isComplete: Bool = false
    ) throws -> (connection: RawConnection, upload: Upload) {
        let upload = try t.newUpload()
        let content: Request.Content = isChunked ? .openChunks : .declared(Int64(Self.size))
        let connection = try t.connect()
        try connection.send(t.append(upload, at: 0, complete: isComplete, content))
        let bytes = t.bytes(Self.part)
        try connection.send(isChunked ? Request.chunk(bytes) : bytes)
        return (connection, upload)
    }

    /// The highest offset that is reported within the timeout, and whether the upload is complete by then.
    private func awaitOffset(_ t: CaseContext, _ upload: Upload) throws -> (offset: Int64, isComplete: Bool) {
        let deadline = Deadline(in: timeout)
        while true {
            let state = try t.state(of: upload)
            if state.offset >= Self.part || state.isComplete == true || deadline.isOver {
                return (state.offset, state.isComplete == true)
            }
            Deadline.pause(.milliseconds(20))
        }
    }

    /// Time for what was sent to get there, more at each try: the question itself ends the append.
    private var pauses: [Duration] { [.milliseconds(200), .seconds(1), timeout] }

    private func body(_ t: CaseContext, isChunked: Bool) throws -> ProxyRun.Answer {
        var reported = (offset: Int64(0), isComplete: false)
        for pause in pauses where reported.offset == 0 {
            let (connection, upload) = try openAppend(t, isChunked: isChunked)
            Deadline.pause(pause)
            reported = try awaitOffset(t, upload)
            connection.close()
        }
        let isStreamed = reported.offset > 0
        if isChunked { behavior.chunkedBody = isStreamed ? .streamed : .withheld }
        if !isChunked { behavior.body = isStreamed ? .streamed : .withheld }
        return isStreamed
            ? (.good, "streamed: \(reported.offset) of \(Self.part) bytes had arrived while it was under way")
            : (isChunked ? .poor : .bad, "held back: nothing of \(Self.part) bytes arrived while it was under way")
    }

    private func abort(_ t: CaseContext, isChunked: Bool) throws -> ProxyRun.Answer {
        if behavior.body == .withheld { return (.neutral, "not asked: the server sees no body that is under way") }
        var reported = (offset: Int64(0), isComplete: false)
        var time: Int64 = 0
        for pause in pauses where reported.offset < Self.part && !reported.isComplete {
            let (connection, upload) = try openAppend(t, isChunked: isChunked, complete: true)
            Deadline.pause(pause)
            connection.close()
            // To ask ends the append: a proxy that fakes the end of its content has to come first.
            if isChunked { Deadline.pause(.milliseconds(500)) }
            let start = SystemClock.monotonicNanoseconds()
            reported = try awaitOffset(t, upload)
            time = ProxyRun.milliseconds(since: start)
        }
        let abort: ProxyBehavior.Abort
        if reported.isComplete {
            abort = .faked
        } else {
            abort = .seen(milliseconds: time, bytesMissing: max(0, Int64(Self.part) - reported.offset))
        }
        if isChunked { behavior.chunkedAbort = abort } else { behavior.abort = abort }
        if reported.isComplete { return (.bad, "the upload is complete with \(reported.offset) of \(Self.size) bytes") }
        return reported.offset >= Self.part
            ? (.good, "the offset has all of it after \(time) ms")
            : (.poor, "the offset is \(reported.offset) where \(Self.part) bytes were sent")
    }

    private func takeOver(_ t: CaseContext) throws -> ProxyRun.Answer {
        let (connection, upload) = try openAppend(t, isChunked: false)
        Deadline.pause(.milliseconds(200))
        let start = SystemClock.monotonicNanoseconds()
        let state = try t.state(of: upload)
        let remaining = Self.size - Int(state.offset)
        let response = try t.appending(
            upload, at: state.offset, complete: true, .bytes(t.bytes(remaining, from: Int(state.offset))))
        let time = ProxyRun.milliseconds(since: start)
        connection.close()
        return response.isSuccessful
            ? (
                time <= timeout.milliseconds ? .good : .poor,
                "an upload that is stuck is found, continued and done after \(time) ms"
            )
            : (.bad, "an upload that is stuck cannot be continued: \(response.summary)")
    }

    private func earlyAnswer(_ t: CaseContext) throws -> ProxyRun.Answer {
        if behavior.body == .withheld { return (.neutral, "not asked: the server sees no body that is under way") }
        let upload = try t.newUpload(t.part)
        let connection = try t.connect()
        let total = 3_000_000
        try connection.send(t.append(upload, at: 999_999, complete: false, .declared(Int64(total))))
        try connection.send(t.bytes(Self.part))
        let start = SystemClock.monotonicNanoseconds()
        if try connection.awaitHead(within: timeout) {
            let time = ProxyRun.milliseconds(since: start)
            let response = try connection.readResponse()
            behavior.earlyAnswer = response.isRefusal ? .passed(milliseconds: time) : .lost("\(response.status)")
            return response.isRefusal
                ? (.good, "\(response.status) comes after \(time) ms")
                : (.poor, "a refusal came as \(response.summary)")
        }
        // Proxies made with Go report it as soon as they have read what comes next.
        try connection.send(t.bytes(Self.part), stoppingAtResponse: true)
        if try connection.awaitHead(within: timeout) {
            let response = try connection.readResponse()
            if response.isRefusal {
                behavior.earlyAnswer = .passed(milliseconds: ProxyRun.milliseconds(since: start))
                return (.good, "\(response.status) comes with the next bytes that are sent")
            }
        }
        behavior.earlyAnswer = .late
        return (.poor, "a refusal does not come while the body is under way")
    }

    private func ranges(_ t: CaseContext) throws -> ProxyRun.Answer {
        let content = t.bytes(Self.part)
        let request = t.creation(complete: true, .bytes(content))
        let response = try t.exchange(request)
        try t.expectSuccess(response, "to a whole upload")
        let place = try t.place(of: response, to: request)
        let file = try t.download(place)
        guard let tag = file.fields["ETag"] else { return (.neutral, "not asked: a GET reports no ETag") }
        let part = try t.download(place, [("Range", "bytes=100-199"), ("If-Range", tag)])
        behavior.passesRanges = part.status == 206 && part.content == Array(content[100..<200])
        return behavior.passesRanges == true
            ? (.good, "a download goes on where it stopped") : (.poor, "a download begins anew: \(part.summary)")
    }
}
