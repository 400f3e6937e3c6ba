/// Checks every request of a run against rules that do not depend on the scenario, for cases at the end of the run.
struct ClientRules {
    enum Rule: String, CaseIterable {
        case wellFormed = "9112/requests"
        case contentLength = "9112/content-length"
        case stopsAfterFailures = "9110/stops"
        case version = "B/every-request"
        case appendFields = "4.4.1/append-fields"
        case lengths = "4.1.3/consistent-lengths"
        case lengthReported = "4.1.3/length-reported"
        case bytes = "4.1.1/bytes-at-offset"
        case oneAtATime = "4.6/one-transfer"
        case noRetrievalMeanwhile = "4.3/not-meanwhile"
        case offsetFromResponse = "4.4.1/offset-reported"
        case codings = "8/codings-once"
        case disposition = "4.2.1/disposition"
        case conditions = "13/if-range"
        case secrecy = "13/secret"
        case noIncompleteFile = "14/no-half-file"

        var isAboutBoth: Bool { self == .wellFormed || self == .contentLength || self == .stopsAfterFailures }
    }

    /// The rules with the cases that report their violations, in the order of the report.
    static let cases: [(Rule, CaseInfo)] = [
        (.wellFormed, .init("9112/requests", .must, "RFC 9112", "Requests are well-formed HTTP/1.1.")),
        (
            .contentLength,
            .init(
                "9112/content-length", .must, "RFC 9112 6.2",
                "Content has as many bytes as Content-Length states; the next byte on the connection begins a request.")
        ),
        (
            .stopsAfterFailures,
            .init(
                "9110/stops", .should, "RFC 9110 9.2.2",
                "A client stops after several attempts without progress.", covers: "CLI-32")
        ),
        (
            .version,
            .init(
                "B/every-request", .must, "appendix B",
                "A client of the draft states a version in all of its requests, and the same version in all requests for an upload.",
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
            .init(
                "4.1.3/consistent-lengths", .must, "4.1.3",
                "Upload-Length and Content-Length are consistent with the size of the file.", covers: "CLI-05")
        ),
        (
            .lengthReported,
            .init(
                "4.1.3/length-reported", .should, "4.1.3",
                "A creation states the length of the file: by Upload-Length, or by Content-Length if it has all content.",
                covers: "CLI-04")
        ),
        (
            .bytes,
            .init(
                "4.1.1/bytes-at-offset", .must, "4.4.1",
                "The content of an append is the bytes of the file that begin at its offset."
            )
        ),
        (
            .oneAtATime,
            .init(
                "4.6/one-transfer", .must, "4.6", "A client runs one transfer at a time for each upload.",
                covers: "CLI-06")
        ),
        (
            .noRetrievalMeanwhile,
            .init(
                "4.3/not-meanwhile", .must, "4.3.1", "The client does not retrieve the offset while it sends content.",
                covers: "CLI-07")
        ),
        (
            .offsetFromResponse,
            .init(
                "4.4.1/offset-reported", .should, "4.4.1",
                "The offset of an append is the one that the previous response reported.",
                covers: "CLI-08")
        ),
        (
            .codings,
            .init("8/codings-once", .must, "8", "Appends have no Content-Encoding.", covers: "CLI-28")
        ),
        (
            .disposition,
            .init(
                "4.2.1/disposition", .should, "4.2.1", "Content-Disposition with a file name has the type inline.",
                covers: "CLI-37")
        ),
        (
            .conditions,
            .init(
                "13/if-range", .must, "RFC 9110 13.1.5",
                "If-Range is sent only together with Range, and never with a weak entity tag.",
                covers: "RNG-31")
        ),
        (
            .secrecy,
            .init(
                "13/secret", .should, "13",
                "The client does not print the URI of an upload, and does not send it to other origins.",
                covers: "CLI-31")
        ),
        (
            .noIncompleteFile,
            .init(
                "14/no-half-file", .info, "RFC 9110 15.3.7",
                "A failed download leaves no incomplete file under the final name.")
        ),
    ]

    private(set) var violations: [Rule: [String]] = [:]
    /// The ID of the first scenario with a violation of the rule.
    private(set) var first: [Rule: String] = [:]
    /// The number of requests for uploads that were checked.
    private(set) var uploads = 0
    /// The number of requests for downloads that were checked.
    private(set) var downloads = 0

    static func isAboutDownloads(_ rule: Rule) -> Bool { rule == .conditions || rule == .noIncompleteFile }

    mutating func observe(_ record: ScenarioRecord, isFileChanged: Bool) {
        for text in record.malformed { note(.wellFormed, text, record) }
        for text in record.surplus { note(.contentLength, text, record) }
        if record.endings.contains(.repeatedRequests) {
            note(.stopsAfterFailures, "\(record.requests.count) requests", record)
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
            if let place = request.differsAt, !(isFileChanged && request.run > 1) {
                note(.bytes, "different bytes beginning at offset \(place), in \(request.summary)", record)
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
        let isOfDraft = ![.stray, .plain].contains(request.kind)
        if isDraft, isOfDraft, request.profile == .rfc { note(.version, request.summary, record) }
        if request.kind == .append {
            let type = request.fields["Content-Type"]?.lowercased()
            let lacksType = request.profile.hasMediaType && type != "application/partial-upload"
            // Before version 7 Upload-Complete may be absent. Such an append completes the upload only in version 3.
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
            note(.lengthReported, request.summary, record)
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
            // A client that requests the stored response of a complete upload sends an append without content.
            let isRepeat = record.requests.contains {
                $0.number < request.number && $0.upload == request.upload && $0.isReportedComplete == true
            }
            if isComplete, isRepeat, length == 0 { continue }
            if end > record.size || (isComplete && end != record.size) { note(.lengths, request.summary, record) }
        }
    }

    private mutating func observeOrder(_ record: ScenarioRecord) {
        var reported: [Int: Int64] = [:]
        for request in record.requests {
            guard let upload = request.upload else { continue }
            // Requests whose content is complete but was still being received when the next request arrived.
            let running = record.requests.filter {
                $0.number < request.number && $0.upload == upload && $0.run == request.run && $0.isContentComplete
                    && $0.hasContent && $0.lastReadAt > request.arrivedAt
            }
            if let other = running.first {
                let text = "\(request.summary), during \(other.summary)"
                if request.kind == .append { note(.oneAtATime, text, record) }
                if request.kind == .retrieval { note(.noRetrievalMeanwhile, text, record) }
            }
            if request.kind == .append, let offset = request.offset, let known = reported[upload], known != offset {
                note(.offsetFromResponse, "\(request.summary), after \(known) had been reported", record)
            }
            reported[upload] = request.reportedOffset
        }
    }

    private mutating func observeDownload(_ record: ScenarioRecord) {
        for request in record.requests {
            guard let condition = request.fields["If-Range"] else { continue }
            if !request.fields.contains("Range") || condition.hasPrefix("W/") {
                note(.conditions, request.summary, record)
            }
        }
        if !record.isSuccessful, let file = record.file, record.edition == nil {
            note(.noIncompleteFile, "\(file.count) of \(record.size) bytes under the final name", record)
        }
    }

    private mutating func note(_ rule: Rule, _ text: String, _ record: ScenarioRecord) {
        if first[rule] == nil { first[rule] = record.scenario.id }
        if violations[rule, default: []].count < 20 {
            violations[rule, default: []].append("\(text) (in \(record.scenario.id))")
        }
    }
}
