/// What holds for every request, whatever the scenario is about; verified at the end of the run.
struct ClientRules {
    enum Rule: String, CaseIterable {
        case wellFormed = "9112/requests"
        case contentLength = "9112/content-length"
        case givesUp = "9110/gives-up"
        case version = "B/every-request"
        case appendFields = "4.4.1/append-fields"
        case lengths = "4.1.3/consistent-lengths"
        case lengthIsTold = "4.1.3/length-reported"
        case bytes = "4.1.1/bytes-at-offset"
        case oneAtATime = "4.6/one-transfer"
        case noRetrievalMeanwhile = "4.3/not-meanwhile"
        case offsetFromResponse = "4.4.1/offset-reported"
        case codings = "8/codings-once"
        case disposition = "4.2.1/disposition"
        case conditions = "13/if-range"
        case secrecy = "13/secret"
        case noHalfFile = "14/no-half-file"

        var isAboutBoth: Bool { self == .wellFormed || self == .contentLength || self == .givesUp }
    }

    /// In the order of the report, with what each demands.
    static let questions: [(Rule, Question)] = [
        (.wellFormed, .init("9112/requests", .must, "RFC 9112", "Requests are well-formed HTTP/1.1.")),
        (
            .contentLength,
            .init(
                "9112/content-length", .must, "RFC 9112 6.2",
                "Content has as many bytes as Content-Length says; the next byte on the connection begins a request.")
        ),
        (
            .givesUp,
            .init(
                "9110/gives-up", .should, "RFC 9110 9.2.2",
                "A client stops after several attempts without progress.", covers: "CLI-32")
        ),
        (
            .version,
            .init(
                "B/every-request", .must, "B",
                "A client of the draft names a version in all of its requests, and the same for one upload.",
                covers: "CLI-01")
        ),
        (
            .appendFields,
            .init(
                "4.4.1/append-fields", .must, "4.4.1",
                "An append has the media type application/partial-upload, Upload-Offset and Upload-Complete.",
                covers: "CLI-03")
        ),
        (
            .lengths,
            .init("4.1.3/consistent-lengths", .must, "4.1.3", "All indications of the length agree.", covers: "CLI-05")
        ),
        (
            .lengthIsTold,
            .init(
                "4.1.3/length-reported", .should, "4.1.3", "The length is reported as soon as it is known.",
                covers: "CLI-04")
        ),
        (
            .bytes,
            .init(
                "4.1.1/bytes-at-offset", .must, "4.4.1", "Content is the file's bytes from the offset on that is named."
            )
        ),
        (
            .oneAtATime,
            .init("4.6/one-transfer", .must, "4.6", "One transfer at a time goes to an upload.", covers: "CLI-06")
        ),
        (
            .noRetrievalMeanwhile,
            .init(
                "4.3/not-meanwhile", .must, "4.3.1", "The client does not request the offset while it sends content.",
                covers: "CLI-07")
        ),
        (
            .offsetFromResponse,
            .init(
                "4.4.1/offset-reported", .should, "4.4.1",
                "An append is at the offset that the response before it reported.",
                covers: "CLI-08")
        ),
        (
            .codings,
            .init("8/codings-once", .must, "8", "Appends repeat no content coding.", covers: "CLI-28")
        ),
        (
            .disposition,
            .init(
                "4.2.1/disposition", .should, "4.2.1", "Content-Disposition that names a file has the type inline.",
                covers: "CLI-37")
        ),
        (
            .conditions,
            .init(
                "13/if-range", .must, "RFC 9110 13.1.5", "If-Range comes with Range, and without a weak entity tag.",
                covers: "RNG-31")
        ),
        (
            .secrecy,
            .init(
                "13/secret", .should, "13",
                "The place of an upload is not written out, and not reported to other origins.",
                covers: "CLI-31")
        ),
        (
            .noHalfFile,
            .init(
                "14/no-half-file", .info, "RFC 9110 15.3.7",
                "A download that failed leaves no half file under its name.")
        ),
    ]

    private(set) var violations: [Rule: [String]] = [:]
    /// The scenario in which the rule was broken first.
    private(set) var first: [Rule: String] = [:]
    /// Whether there was anything to look at.
    private(set) var uploads = 0
    private(set) var downloads = 0

    static func isAboutDownloads(_ rule: Rule) -> Bool { rule == .conditions || rule == .noHalfFile }

    mutating func observe(_ record: ScenarioRecord, changesFile: Bool) {
        for text in record.malformed { note(.wellFormed, text, record) }
        for text in record.surplus { note(.contentLength, text, record) }
        if record.endings.contains(.wentRound) {
            note(.givesUp, "\(record.requests.count) requests", record)
        }
        if record.direction == .download {
            downloads += record.requests.count
            observeDownload(record)
            return
        }
        uploads += record.requests.count
        for upload in record.stage.uploads.uploads {
            let requests = record.requests.filter { $0.upload == upload.number && $0.profile != .rfc }
            let versions = Set(requests.map(\.profile))
            if versions.count > 1 {
                note(.version, versions.map(\.description).sorted().joined(separator: " and "), record)
            }
        }
        for request in record.requests {
            observeFields(request, record)
            if let place = request.differsAt, !(changesFile && request.run > 1) {
                note(.bytes, "other bytes from \(place) on, in \(request.summary)", record)
            }
        }
        observeLengths(record)
        observeOrder(record)
        if record.output.contains(UploadModel.secret) {
            note(.secrecy, "the command wrote the URI of an upload", record)
        }
    }

    private mutating func observeFields(_ request: ScriptedRequest, _ record: ScenarioRecord) {
        let isDraft = record.requests.contains { $0.profile != .rfc }
        let isOfDraft = ![.stray, .plain].contains(request.kind) && !request.isPreflight
        if isDraft, isOfDraft, request.profile == .rfc { note(.version, request.summary, record) }
        if request.kind == .append {
            let type = request.fields["Content-Type"]?.lowercased()
            let lacksType = request.profile.hasMediaType && type != "application/partial-upload"
            // Before version 7 an append without Upload-Complete was one that completes nothing, or everything.
            let lacksCompleteness = request.isComplete == nil && request.profile.rank >= 7
            if lacksType || request.offset == nil || lacksCompleteness {
                note(.appendFields, request.summary, record)
            }
            if request.fields.contains("Content-Encoding") { note(.codings, request.summary, record) }
        }
        if request.kind == .creation, let text = request.single("Content-Disposition") {
            if !text.lowercased().hasPrefix("inline") { note(.disposition, text, record) }
        }
        if request.kind == .creation, request.profile.hasLengthField, request.length == nil,
            request.isComplete == false || request.contentLength == nil
        {
            note(.lengthIsTold, request.summary, record)
        }
        let secret = request.fields.contains { $0.value.contains(UploadModel.secret) }
        if secret, request.origin != 0 { note(.secrecy, request.summary, record) }
    }

    private mutating func observeLengths(_ record: ScenarioRecord) {
        for request in record.of(.creation, .append) {
            if let length = request.length, length != record.size { note(.lengths, request.summary, record) }
            guard let length = request.contentLength else { continue }
            let end = request.start + length
            let isComplete = request.isComplete == true
            // A client that requests the response of a complete upload sends no length.
            let isRepeat = record.requests.contains {
                $0.number < request.number && $0.upload == request.upload && $0.toldComplete == true
            }
            if isComplete, isRepeat, length == 0 { continue }
            if end > record.size || (isComplete && end != record.size) { note(.lengths, request.summary, record) }
        }
    }

    private mutating func observeOrder(_ record: ScenarioRecord) {
        var reported: [Int: Int64] = [:]
        for request in record.requests {
            guard let upload = request.upload else { continue }
            // A client that sends all of its content is still sending when the next request arrives.
            let running = record.requests.filter {
                $0.number < request.number && $0.upload == upload && $0.run == request.run && $0.isContentComplete
                    && $0.bearsContent && $0.lastReadAt > request.arrivedAt
            }
            if let other = running.first {
                let text = "\(request.summary), amid \(other.summary)"
                if request.kind == .append { note(.oneAtATime, text, record) }
                if request.kind == .retrieval { note(.noRetrievalMeanwhile, text, record) }
            }
            if request.kind == .append, let offset = request.offset, let known = reported[upload], known != offset {
                note(.offsetFromResponse, "\(request.summary), after \(known) had been reported", record)
            }
            reported[upload] = request.toldOffset
        }
    }

    private mutating func observeDownload(_ record: ScenarioRecord) {
        for request in record.requests {
            guard let condition = request.fields["If-Range"] else { continue }
            if !request.fields.contains("Range") || condition.hasPrefix("W/") {
                note(.conditions, request.summary, record)
            }
        }
        if !record.succeeded, let file = record.file, record.edition == nil {
            note(.noHalfFile, "\(file.count) of \(record.size) bytes under the name", record)
        }
    }

    private mutating func note(_ rule: Rule, _ text: String, _ record: ScenarioRecord) {
        if first[rule] == nil { first[rule] = record.scenario.id }
        if violations[rule, default: []].count < 20 {
            violations[rule, default: []].append("\(text) (in \(record.scenario.id))")
        }
    }
}
