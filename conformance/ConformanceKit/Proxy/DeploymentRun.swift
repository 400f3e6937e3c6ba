import SystemCalls

/// One run of the proxy mode against a deployed server behind its proxies.
package final class DeploymentRun {
    private let subject: Subject
    private let timeout: Duration
    private let observations = Observations()
    private var behavior = ProxyBehavior()
    private var findings: [ProxyFinding] = []
    private var shouldContinue = true

    private static let size = 300_000
    private static let partSize = 100_000

    /// - Throws: ``RunFailure`` if the settings are invalid.
    package init(_ settings: ProxySettings) throws {
        var server = ServerSettings(url: settings.url)
        server.method = settings.method
        server.fields = settings.fields
        server.trust = settings.trust
        server.timeout = max(.seconds(1), settings.timeout * 2)
        guard let endpoint = Endpoint(settings.url, trusting: settings.trust) else {
            throw RunFailure("'\(settings.url)' is not a URL of the form http://host[:port]/path or https://…")
        }
        subject = Subject(settings: server, endpoint: endpoint)
        timeout = settings.timeout
    }

    /// Runs all checks. `progress` receives each finding as soon as it is known, and returns whether to continue.
    package func run(_ progress: (ProxyFinding) -> Bool = { _ in true }) -> ProxyReport {
        let began = SystemClock.realtimeSeconds()
        let start = SystemClock.monotonicNanoseconds()
        var failure: String?
        do {
            try SubjectProbe(subject: subject, observations: observations).run()
            check("versions", "Versions of the draft", progress, versions)
            check("limits", "Limits", progress, limits)
            check("location", "Location of uploads", progress, location)
            check("interim", "104 responses", progress, interim)
            check("body", "Body with a length", progress) { try self.body($0, isChunked: false) }
            check("body-chunked", "Body without a length", progress) { try self.body($0, isChunked: true) }
            check("abort", "Client closes the connection", progress) { try self.abort($0, isChunked: false) }
            check("abort-chunked", "Client closes; chunked body", progress) { try self.abort($0, isChunked: true) }
            check("take-over", "Resuming a stuck upload", progress, takeOver)
            check("early-answer", "Response during a body", progress, earlyAnswer)
            check("range", "Range and If-Range", progress, ranges)
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

    private func check(
        _ id: String, _ title: String, _ progress: (ProxyFinding) -> Bool,
        _ probe: (CaseContext) throws -> ProxyRun.Answer
    ) {
        guard shouldContinue else { return }
        let context = CaseContext(subject: subject, profile: subject.defaultProfile, observations: observations)
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
        shouldContinue = progress(finding)
    }

    // MARK: - Versions and messages

    private func versions(_ t: CaseContext) throws -> ProxyRun.Answer {
        let words = subject.supportedProfiles.map(\.description).sorted().joined(separator: ", ")
        return (.good, subject.isAnnouncing == false ? "\(words); without 104 other versions are unknown" : words)
    }

    private func limits(_ t: CaseContext) throws -> ProxyRun.Answer {
        if subject.limits.isEmpty { return (.neutral, "OPTIONS reports no limits") }
        return (.good, subject.limits.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ", "))
    }

    /// Checks whether Location has the origin of the tested URL.
    private func location(_ t: CaseContext) throws -> ProxyRun.Answer {
        let upload = try t.newUpload(t.partSize)
        if upload.endpoint.scheme != subject.endpoint.scheme || upload.endpoint.authority != subject.endpoint.authority
        {
            behavior.isOriginPassed = false
        }
        let response = try t.exchange(t.retrieval(upload), with: upload)
        guard response.isSuccessful else { return (.bad, "\(upload.location) responds with \(response.status)") }
        return behavior.isOriginPassed == false
            ? (.poor, "has a different origin: \(upload.location)") : (.good, "has the same origin: \(upload.location)")
    }

    private func interim(_ t: CaseContext) throws -> ProxyRun.Answer {
        let request = t.creation(complete: true, .declared(Int64(Self.partSize)))
        let connection = try t.connect()
        try connection.send(request)
        let live = try connection.awaitAnnouncement(within: timeout)
        if let live { _ = try? t.upload(at: live.location, of: request, live.summary) }
        let framing = ["Transfer-Encoding", "Content-Length", "Connection"]
        if let live, framing.contains(where: live.fields.contains) {
            behavior.interim = .treatedAsFinal
            return (.bad, "the first 104 is handled as the final response, and the bytes after it as its content")
        }
        try connection.send(t.bytes(Self.partSize))
        do {
            let response = try connection.readResponse()
            guard response.status < 500 else {
                behavior.interim = .fatal("status \(response.status)")
                return (.bad, "the upload fails: status \(response.status)")
            }
            if live != nil {
                behavior.interim = .live
                return (.good, "arrive while the server receives the body")
            }
            if !response.announcements.isEmpty {
                behavior.interim = .late
                return (.poor, "arrive only with the final response")
            }
            return (.poor, "none arrives: a proxy drops them, or the server sends none")
        } catch {
            behavior.interim = .fatal("\(error)")
            return (.bad, "the upload fails: \(error)")
        }
    }

    // MARK: - Bodies

    /// Begins an append and sends only a part of its content.
    private func openAppend(
        _ t: CaseContext, isChunked: Bool, complete isComplete: Bool = false
    ) throws -> (connection: RawConnection, upload: Upload) {
        let upload = try t.newUpload()
        let content: Request.Content = isChunked ? .openChunks : .declared(Int64(Self.size))
        let connection = try t.connect()
        try connection.send(t.append(upload, at: 0, complete: isComplete, content))
        let bytes = t.bytes(Self.partSize)
        try connection.send(isChunked ? Request.chunk(bytes) : bytes)
        return (connection, upload)
    }

    /// Waits until the offset includes the part that was sent, or until the timeout. Returns the last reported state.
    private func awaitOffset(_ t: CaseContext, _ upload: Upload) throws -> (offset: Int64, isComplete: Bool) {
        let deadline = Deadline(in: timeout)
        while true {
            let state = try t.state(of: upload)
            if state.offset >= Self.partSize || state.isComplete == true || deadline.isOver {
                return (state.offset, state.isComplete == true)
            }
            Deadline.pause(.milliseconds(20))
        }
    }

    /// The times to wait for the bytes that were sent, before an offset retrieval ends the append. Each attempt waits
    /// longer.
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
            ? (.good, "streamed: \(reported.offset) of \(Self.partSize) bytes arrived before the end of the body")
            : (isChunked ? .poor : .bad, "buffered: none of \(Self.partSize) bytes arrived before the end of the body")
    }

    private func abort(_ t: CaseContext, isChunked: Bool) throws -> ProxyRun.Answer {
        if behavior.body == .withheld { return (.neutral, "not checked: the proxy buffers bodies") }
        var reported = (offset: Int64(0), isComplete: false)
        var time: Int64 = 0
        for pause in pauses where reported.offset < Self.partSize && !reported.isComplete {
            let (connection, upload) = try openAppend(t, isChunked: isChunked, complete: true)
            Deadline.pause(pause)
            connection.close()
            // A proxy that wrongly completes the body needs time to do so before the offset retrieval ends the append.
            if isChunked { Deadline.pause(.milliseconds(500)) }
            let start = SystemClock.monotonicNanoseconds()
            reported = try awaitOffset(t, upload)
            time = ProxyRun.milliseconds(since: start)
        }
        let abort: ProxyBehavior.Abort
        if reported.isComplete {
            abort = .looksComplete
        } else {
            abort = .seen(milliseconds: time, bytesMissing: max(0, Int64(Self.partSize) - reported.offset))
        }
        if isChunked { behavior.chunkedAbort = abort } else { behavior.abort = abort }
        if reported.isComplete { return (.bad, "the upload is complete with \(reported.offset) of \(Self.size) bytes") }
        return reported.offset >= Self.partSize
            ? (.good, "after \(time) ms the offset includes all bytes that were sent")
            : (.poor, "the offset is \(reported.offset), but \(Self.partSize) bytes were sent")
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
                "a stuck upload was resumed and completed after \(time) ms"
            )
            : (.bad, "a stuck upload cannot be continued: \(response.summary)")
    }

    private func earlyAnswer(_ t: CaseContext) throws -> ProxyRun.Answer {
        if behavior.body == .withheld { return (.neutral, "not checked: the proxy buffers bodies") }
        let upload = try t.newUpload(t.partSize)
        let connection = try t.connect()
        let total = 3_000_000
        try connection.send(t.append(upload, at: 999_999, complete: false, .declared(Int64(total))))
        try connection.send(t.bytes(Self.partSize))
        let start = SystemClock.monotonicNanoseconds()
        if try connection.awaitHead(within: timeout) {
            let time = ProxyRun.milliseconds(since: start)
            let response = try connection.readResponse()
            behavior.earlyAnswer = response.isRefusal ? .passed(milliseconds: time) : .lost("\(response.status)")
            return response.isRefusal
                ? (.good, "\(response.status) arrives after \(time) ms")
                : (.poor, "an error response arrived as \(response.summary)")
        }
        // Proxies that are written in Go forward the response as soon as they have read more of the body.
        try connection.send(t.bytes(Self.partSize), stoppingAtResponse: true)
        if try connection.awaitHead(within: timeout) {
            let response = try connection.readResponse()
            if response.isRefusal {
                behavior.earlyAnswer = .passed(milliseconds: ProxyRun.milliseconds(since: start))
                return (.good, "\(response.status) arrives after the next bytes of the body")
            }
        }
        behavior.earlyAnswer = .late
        return (.poor, "an error response does not arrive before the end of the body")
    }

    private func ranges(_ t: CaseContext) throws -> ProxyRun.Answer {
        let content = t.bytes(Self.partSize)
        let request = t.creation(complete: true, .bytes(content))
        let response = try t.exchange(request)
        try t.expectSuccess(response, "to an upload in one request")
        let fileURL = try t.fileURL(of: response, to: request)
        let file = try t.download(fileURL)
        guard let tag = file.fields["ETag"] else { return (.neutral, "not checked: the response to GET has no ETag") }
        let part = try t.download(fileURL, [("Range", "bytes=100-199"), ("If-Range", tag)])
        behavior.isRangePassed = part.status == 206 && part.content == Array(content[100..<200])
        return behavior.isRangePassed == true
            ? (.good, "a download is resumed where it stopped") : (.poor, "a download restarts: \(part.summary)")
    }
}
