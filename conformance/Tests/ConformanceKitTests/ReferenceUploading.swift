import Foundation
import HTTPSemantics
import StructuredFields
import SystemCalls

@testable import ConformanceKit

/// An upload of the reference client, in version 8.
final class ReferenceUploading: ReferenceTransfer {
    enum Phase {
        case create
        case retrieve
        case append
        case discover
        case plain
    }

    let content: [UInt8]
    var profile = Profile.interop(8)
    var phase = Phase.create
    var creationEndpoint: Endpoint
    var upload: Endpoint?
    var acknowledged: Int64 = 0
    var maxAppendSize: Int64?
    var minAppendSize: Int64 = 0
    var maxSize: Int64?
    var expires: Int64?
    var hasDiscovered = false
    var redirections = 0
    private var restarts = 0
    var locations: Set<String> = []

    var size: Int64 { Int64(content.count) }
    private var stateFile: String { task.state + "/upload" }
    /// The beginning of the file. If it differs from the saved one, the file has changed.
    private var fileStart: String { Data(content.prefix(64)).base64EncodedString() }

    override init(_ client: ReferenceClient, _ task: CandidateTask, _ target: Endpoint) {
        content = (try? Data(contentsOf: URL(fileURLWithPath: task.file))).map { [UInt8]($0) } ?? []
        creationEndpoint = target
        super.init(client, task, target)
    }

    func run() throws {
        try restore()
        if client.allowedBehavior == .deletesUploadAtEnd {
            _ = try? exchange(Request("HEAD", target.target), at: target)
        }
        if client.allowedBehavior == .sendsPreflights {
            let fields = [("Origin", "null"), ("Access-Control-Request-Method", "POST")]
            let response = try exchange(Request("OPTIONS", target.target, fields), at: target)
            let allowed = ["Access-Control-Allow-Methods", "Access-Control-Allow-Origin"].map { response.fields[$0] }
            guard response.status == 204, allowed == ["POST", "*"] else { throw ReferenceFailure.failed }
        }
        while true {
            do {
                if try step() { break }
            } catch ReferenceFailure.failed where mayStartOver {
                startOver()
            } catch let failure as WireFailure {
                if case .closed = failure, client.has(.treatsClosedUploadAsSuccess) { return }
                switch client.allowedBehavior {
                case .neverResumes: throw ReferenceFailure.failed
                case .startsOver where mayStartOver:
                    startOver()
                    continue
                case .resumesLater where upload != nil: throw ReferenceFailure.interrupted
                case .fallsBack where mayStartOver:
                    startOver()
                    phase = .plain
                    continue
                default: break
                }
                // Without an announcement there is nothing to resume, and a creation is not repeated.
                if upload == nil, phase == .create, !failure.isConnectTimeout {
                    guard client.has(.inventsUploads) else { throw ReferenceFailure.failed }
                    upload = target.resolving("/uploads/1")
                }
                if client.has(.ignoresLostAnswer), acknowledged == 0 { phase = .create } else { phase = .retrieve }
                try waitForNextAttempt()
            }
        }
        if client.allowedBehavior == .deletesUploadAtEnd { cancel() }
    }

    private var mayStartOver: Bool {
        let allowedBehaviors: [AllowedClientBehavior] = [
            .startsOver, .startsOverAfterFailure, .fallsBack, .sendsPreflights,
        ]
        return client.allowedBehavior.map(allowedBehaviors.contains) == true && restarts < 3
    }

    private func startOver() {
        restarts += 1
        (phase, upload, acknowledged, expires) = (.create, nil, 0, nil)
        if client.allowedBehavior == .sendsPreflights { profile = .interop(7) }
    }

    /// - Returns: whether the upload is done.
    private func step() throws -> Bool {
        if let expires, SystemClock.monotonicNanoseconds() > expires, !client.has(.usesExpiredUpload) {
            throw ReferenceFailure.failed
        }
        switch phase {
        case .create: return try create()
        case .retrieve: return try retrieve()
        case .append: return try append()
        case .discover:
            phase = upload == nil ? .create : .retrieve
            let response = try exchange(Request("OPTIONS", target.target, fields(for: target)), at: target)
            adoptLimits(response.fields)
            return false
        case .plain:
            let request = Request("PUT", target.target, credentials(for: target), .bytes(content))
            return try exchange(request, at: target).isSuccessful
        }
    }

    // MARK: - Requests

    func fields(for endpoint: Endpoint) -> [(String, String)] {
        credentials(for: endpoint) + profile.versionFields
    }

    func exchange(_ request: ConformanceKit.Request, at endpoint: Endpoint) throws -> Response {
        let connection = try connect(endpoint)
        defer { connection.close() }
        return try connection.exchange(request)
    }

    private func create() throws -> Bool {
        let isComplete =
            !client.has(.omitsLength) && client.allowedBehavior != .ignoresInterims
            && maxAppendSize.map { size <= $0 } ?? true
        let isEmptyPart = size == 0 && client.has(.leavesEmptyIncomplete)
        var fields = fields(for: creationEndpoint) + [profile.completeness(isComplete && !isEmptyPart)]
        if !client.has(.omitsLength) {
            fields.append(("Upload-Length", "\(client.has(.statesOtherLength) ? size + 1 : size)"))
        }
        if client.has(.sendsAttachmentDisposition) {
            fields.append(("Content-Disposition", "attachment; filename=\"a\""))
        }
        if client.has(.breaksFields) { fields.append(("Not a token", "1")) }
        locations = []
        let connection = try connect(creationEndpoint)
        defer { connection.close() }
        let request = Request("POST", creationEndpoint.target, fields)
        if isComplete && size > 0 {
            var announced = request
            announced.content = .declared(size)
            try connection.send(announced)
            // The client waits a short time for the 104 before it sends the content.
            let sendsRequestMeanwhile = client.has(.sendsRequestMeanwhile) || client.has(.appendsMeanwhile)
            let isNeeded =
                sendsRequestMeanwhile || client.has(.usesFirstLimit) || client.has(.acceptsPartlyInvalidLimits)
            let timeout = isNeeded ? Self.timeout : .milliseconds(50)
            if try connection.awaitHead(within: timeout) { try handleInterims(connection) }
            try stopIfTooLarge()
            if sendsRequestMeanwhile { return try create(during: connection) }
        } else {
            var empty = request
            empty.content = .bytes([])
            try connection.send(empty)
        }
        let response: Response
        do {
            if isComplete && size > 0 && connection.finalHead == nil { try send(content, from: 0, on: connection) }
            response = try connection.readResponse()
        } catch let failure as WireFailure {
            try handleInterims(connection)
            try stopIfTooLarge()
            throw failure
        }
        try handleInterims(connection, response.interim)
        if isEmptyPart, response.isSuccessful { return true }
        return try handleResponse(response, isLast: isComplete, count: isComplete ? size : 0, isCreation: true)
    }

    /// Sends the content of a creation, and sends another request before the content is complete.
    private func create(during connection: RawConnection) throws -> Bool {
        guard let upload else { throw ReferenceFailure.failed }
        try connection.send(Array(content.prefix(100_000)))
        if client.has(.sendsRequestMeanwhile) {
            _ = try exchange(Request("HEAD", upload.target, fields(for: upload)), at: upload)
        } else {
            let fields =
                fields(for: upload) + [
                    ("Content-Type", "application/partial-upload"), ("Upload-Offset", "0"), profile.completeness(false),
                ]
            _ = try exchange(Request("PATCH", upload.target, fields, .bytes([])), at: upload)
        }
        try connection.send(Array(content.dropFirst(100_000)))
        return try connection.readResponse().isSuccessful
    }

    private func append() throws -> Bool {
        guard let upload else { throw ReferenceFailure.failed }
        let behind: Int64 = client.has(.appendsBehindOffset) ? 10 : 0
        let start = client.has(.resendsFromZero) ? 0 : max(0, acknowledged - behind)
        let limit = client.has(.ignoresAppendLimit) ? nil : maxAppendSize
        let count = min(size - start, limit ?? .max)
        let isLast = start + count == size
        var fields = fields(for: upload)
        if client.has(.dropsVersionOnAppend) { fields.removeAll { $0.0.hasPrefix("Upload-Draft") } }
        if client.has(.repeatsCoding) { fields.append(("Content-Encoding", "gzip")) }
        if !client.has(.appendsWithoutMediaType) { fields.append(("Content-Type", "application/partial-upload")) }
        fields += [("Upload-Offset", "\(start)"), profile.completeness(isLast), ("Upload-Length", "\(size)")]
        let connection = try connect(upload)
        defer { connection.close() }
        let method = client.has(.changesMethod) && redirections > 0 ? "POST" : "PATCH"
        var request = Request(method, upload.target, fields)
        request.content = .declared(count)
        try connection.send(request)
        let shift = client.has(.sendsShiftedBytes) ? -1 : 0
        let first = Int(start) + (start > 0 ? shift : 0)
        try send(Array(content[first..<(first + Int(count))]), from: start, on: connection)
        let response = try connection.readResponse()
        return try handleResponse(response, isLast: isLast, count: start + count, isCreation: false)
    }

    private func send(_ bytes: [UInt8], from start: Int64, on connection: RawConnection) throws {
        var sent = 0
        while sent < bytes.count {
            let piece = Array(bytes[sent..<min(bytes.count, sent + 20_000)])
            if client.allowedBehavior == .readsLate {
                sent += try connection.send(piece)
                if connection.isOutputBroken {
                    connection.close()
                    return
                }
                Deadline.pause(.milliseconds(10))
                continue
            }
            let count = try connection.send(piece, stoppingAtResponse: !client.has(.keepsSendingAfterResponse))
            sent += count
            try handleInterims(connection)
            try stopIfTooLarge()
            if !client.has(.keepsSendingAfterResponse), count < piece.count || connection.finalHead != nil { return }
        }
        if client.has(.sendsOneByteMore) { _ = try connection.send([UInt8(ascii: "x")], stoppingAtResponse: true) }
    }

    private func retrieve() throws -> Bool {
        guard let upload else { throw ReferenceFailure.failed }
        let response = try exchange(Request("HEAD", upload.target, fields(for: upload)), at: upload)
        if response.status == 503, client.has(.startsOverAfterError) {
            (phase, self.upload, acknowledged) = (.create, nil, 0)
            return false
        }
        if response.status == 503 {
            try waitForNextAttempt(after: response.single("Retry-After").flatMap { Int64($0) })
            return false
        }
        if let moved = redirection(response, from: upload) {
            self.upload = moved
            return false
        }
        guard response.isSuccessful else {
            guard client.has(.continuesAfterGone) else { throw ReferenceFailure.failed }
            phase = .append
            return false
        }
        adoptLimits(response.fields)
        var offset = response.integer("Upload-Offset")
        if profile.isComplete(response) == true {
            // The final response was lost. If content is missing, this response cannot have been a success.
            guard offset == size || client.has(.treatsEarlyEndAsSuccess) else { throw ReferenceFailure.failed }
            return true
        }
        if client.has(.treatsOneAsTrue), response.fields["Upload-Complete"] == "1" { return true }
        if client.has(.treatsEndAsCompletion), offset == size { return true }
        let text = response.fields["Upload-Length"]?.filter { $0 != "\"" }
        let length = client.has(.readsStringLength) ? text.flatMap { Int64($0) } : response.integer("Upload-Length")
        if let length, length != size { throw ReferenceFailure.failed }
        if client.allowedBehavior == .triesBeginning, offset == nil {
            acknowledged = 0
            phase = .append
            return false
        }
        if client.has(.readsDecimalOffsets), offset == nil {
            offset = response.fields["Upload-Offset"].flatMap { Double($0) }.map { Int64($0) }
        }
        try adopt(offset)
        phase = .append
        return false
    }

    // MARK: - State file

    func remember() {
        guard let upload, !client.has(.forgetsState) else { return }
        try? "\(upload.url)\n\(fileStart)".write(toFile: stateFile, atomically: true, encoding: .utf8)
    }

    private func restore() throws {
        guard let text = try? String(contentsOfFile: stateFile, encoding: .utf8) else { return }
        let lines = text.split(separator: "\n").map(String.init)
        guard lines.count == 2, lines[1] == fileStart || client.has(.appendsChangedFile) else {
            throw ReferenceFailure.failed
        }
        upload = Endpoint(lines[0])
        phase = .retrieve
    }
}

extension WireFailure {
    fileprivate var isConnectTimeout: Bool {
        if case .cannotConnect(_, .timedOut) = self { true } else { false }
    }
}
