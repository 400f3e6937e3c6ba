import Foundation
import HTTPSemantics
import StructuredFields
import SystemCalls

@testable import ConformanceKit

/// An upload of the reference client, in version 8.
final class ReferenceUploading: ReferenceTransfer {
    private enum Phase {
        case create
        case retrieve
        case append
        case discover
    }

    private let content: [UInt8]
    private let profile = Profile.interop(8)
    private var phase = Phase.create
    private var place: Endpoint
    private var upload: Endpoint?
    private var acknowledged: Int64 = 0
    private var most: Int64?
    private var least: Int64 = 0
    private var maxSize: Int64?
    private var expires: Int64?
    private var hasDiscovered = false
    private var redirections = 0
    private var locations: Set<String> = []

    private var size: Int64 { Int64(content.count) }
    private var memory: String { task.state + "/upload" }
    private var source: String {
        SecureHash.sha256(content).map { String($0, radix: 16) }.joined(separator: ".")
    }

    override init(_ client: ReferenceClient, _ task: CandidateTask, _ target: Endpoint) {
        content = (try? Data(contentsOf: URL(fileURLWithPath: task.file))).map { [UInt8]($0) } ?? []
        place = target
        super.init(client, task, target)
    }

    func run() throws {
        try restore()
        while true {
            do {
                if try step() { return }
            } catch let failure as WireFailure {
                // The upload was announced, or there is nothing to go on with: a creation is not repeated.
                if upload == nil, phase == .create, failure != .cannotConnect(.timedOut) { throw ReferenceStop.failed }
                if client.has(.ignoresLostAnswer), acknowledged == 0 { phase = .create } else { phase = .retrieve }
                try fail()
            }
        }
    }

    /// - Returns: whether the upload is done.
    private func step() throws -> Bool {
        if let expires, SystemClock.monotonicNanoseconds() > expires { throw ReferenceStop.failed }
        switch phase {
        case .create: return try create()
        case .retrieve: return try retrieve()
        case .append: return try append()
        case .discover:
            phase = upload == nil ? .create : .retrieve
            let response = try exchange(Request("OPTIONS", target.target, fields(for: target)), at: target)
            note(response.fields)
            return false
        }
    }

    // MARK: - Requests

    private func fields(for endpoint: Endpoint) -> [(String, String)] {
        credentials(for: endpoint) + profile.versionFields
    }

    private func exchange(_ request: ConformanceKit.Request, at endpoint: Endpoint) throws -> Response {
        let connection = try connect(endpoint)
        defer { connection.close() }
        return try connection.exchange(request)
    }

    private func create() throws -> Bool {
        let isWhole = most.map { size <= $0 } ?? true
        var fields = fields(for: place) + [profile.completeness(isWhole)]
        fields.append(("Upload-Length", "\(client.has(.statesOtherLength) ? size + 1 : size)"))
        locations = []
        let connection = try connect(place)
        defer { connection.close() }
        let request = Request("POST", place.target, fields)
        if isWhole && size > 0 {
            var announced = request
            announced.content = .declared(size)
            try connection.send(announced)
            // The content waits for the 104, for a while.
            if try connection.awaitHead(within: .milliseconds(50)) { try takeInterims(connection) }
            try stopIfUnwanted()
            if connection.finalHead == nil { try send(content, from: 0, on: connection) }
        } else {
            var empty = request
            empty.content = .bytes([])
            try connection.send(empty)
        }
        let response: Response
        do { response = try connection.readResponse() } catch {
            try takeInterims(connection)
            try stopIfUnwanted()
            throw error
        }
        try takeInterims(connection, response.interim)
        return try takeAnswer(response, isLast: isWhole, count: isWhole ? size : 0, isCreation: true)
    }

    private func append() throws -> Bool {
        guard let upload else { throw ReferenceStop.failed }
        let start = client.has(.resendsFromZero) ? 0 : acknowledged
        let limit = client.has(.ignoresAppendLimit) ? nil : most
        let count = min(size - start, limit ?? .max)
        let isLast = start + count == size
        var fields = fields(for: upload)
        if client.has(.dropsVersionOnAppend) { fields.removeAll { $0.0.hasPrefix("Upload-Draft") } }
        if !client.has(.appendsWithoutMediaType) { fields.append(("Content-Type", "application/partial-upload")) }
        fields += [("Upload-Offset", "\(start)"), profile.completeness(isLast), ("Upload-Length", "\(size)")]
        let connection = try connect(upload)
        defer { connection.close() }
        var request = Request("PATCH", upload.target, fields)
        request.content = .declared(count)
        try connection.send(request)
        let shift = client.has(.sendsShiftedBytes) ? -1 : 0
        let first = Int(start) + (start > 0 ? shift : 0)
        try send(Array(content[first..<(first + Int(count))]), from: start, on: connection)
        let response = try connection.readResponse()
        return try takeAnswer(response, isLast: isLast, count: start + count, isCreation: false)
    }

    private func send(_ bytes: [UInt8], from start: Int64, on connection: RawConnection) throws {
        var sent = 0
        while sent < bytes.count {
            let piece = Array(bytes[sent..<min(bytes.count, sent + 20_000)])
            let count = try connection.send(piece, stoppingAtResponse: true)
            try takeInterims(connection)
            try stopIfUnwanted()
            sent += count
            if count < piece.count || connection.finalHead != nil { return }
        }
    }

    private func retrieve() throws -> Bool {
        guard let upload else { throw ReferenceStop.failed }
        let response = try exchange(Request("HEAD", upload.target, fields(for: upload)), at: upload)
        if response.status == 503 {
            try fail(after: response.single("Retry-After").flatMap { Int64($0) })
            return false
        }
        if let moved = redirection(response, from: upload) {
            self.upload = moved
            return false
        }
        guard response.isSuccessful else {
            guard client.has(.goesOnAfterGone) else { throw ReferenceStop.failed }
            phase = .append
            return false
        }
        note(response.fields)
        if profile.isComplete(response) == true { return true }
        var offset = response.integer("Upload-Offset")
        if client.has(.readsDecimalOffsets), offset == nil {
            offset = response.fields["Upload-Offset"].flatMap { Double($0) }.map { Int64($0) }
        }
        try adopt(offset)
        phase = .append
        return false
    }

    // MARK: - Answers

    private func adopt(_ offset: Int64?) throws {
        guard let offset else { throw ReferenceStop.failed }
        if offset < acknowledged && !client.has(.acceptsLowerOffset) { throw ReferenceStop.failed }
        if offset > size {
            guard client.has(.acceptsImpossibleOffset) else { throw ReferenceStop.failed }
            acknowledged = size
            return
        }
        if offset > acknowledged { progress() }
        acknowledged = offset
        remember()
    }

    private func redirection(_ response: Response, from endpoint: Endpoint) -> Endpoint? {
        guard [307, 308].contains(response.status), redirections < 5 else { return nil }
        redirections += 1
        return response.location.flatMap(endpoint.resolving)
    }

    private func takeAnswer(_ response: Response, isLast: Bool, count: Int64, isCreation: Bool) throws -> Bool {
        if isCreation, let moved = redirection(response, from: place) {
            place = moved
            upload = nil
            return false
        }
        if !isCreation, let moved = upload.flatMap({ redirection(response, from: $0) }) {
            upload = moved
            return false
        }
        let isComplete = profile.isComplete(response)
        if let location = response.location, isCreation,
            isComplete == false || client.has(.takesApplicationLocationForError)
        {
            try locate(location)
        }
        if isComplete == true {
            if response.isSuccessful { return true }
            guard client.has(.resumesFinalAnswers) else { throw ReferenceStop.failed }
            phase = .retrieve
            return false
        }
        if response.isSuccessful {
            if isLast && isComplete == nil { return true }
            guard upload != nil else { throw ReferenceStop.failed }
            note(response.fields)
            progress()
            if isLast {
                phase = .retrieve
            } else {
                acknowledged = count
                phase = .append
            }
            return false
        }
        try takeRefusal(response, isCreation: isCreation, size: isCreation ? size : count - acknowledged)
        return false
    }

    private func takeRefusal(_ response: Response, isCreation: Bool, size count: Int64) throws {
        switch response.status {
        case 409:
            let told = client.has(.ignoresOffsetOf409) ? nil : response.integer("Upload-Offset")
            if let told, told != acknowledged { try adopt(told) } else { phase = .retrieve }
            if client.has(.ignoresOffsetOf409) { phase = .append }
            try fail()
        case 413:
            let known = most
            note(response.fields)
            try stopIfUnwanted()
            if most == known { most = max(1, min(count, most ?? .max) / 2) }
            phase = upload == nil ? .create : .retrieve
            if known == nil, response.limits == nil, !hasDiscovered {
                hasDiscovered = true
                phase = .discover
            }
        case 429, 503:
            try fail(after: response.single("Retry-After").flatMap { Int64($0) })
            phase = upload == nil ? .create : .retrieve
        default:
            guard isCreation, client.has(.repeatsRefusals) else { throw ReferenceStop.failed }
            try fail()
        }
    }

    /// Takes the interim responses that have come.
    private func takeInterims(_ connection: RawConnection, _ given: [InterimResponse]? = nil) throws {
        for interim in given ?? connection.interim {
            if client.has(.misreadsInterims), interim.status != 104, interim.status != 100 {
                throw ReferenceStop.failed
            }
            let version = interim.integer("Upload-Draft-Interop-Version")
            guard interim.status == 104, version == 8 || client.has(.believesOtherVersions) else { continue }
            if let location = interim.location { try locate(location) }
            note(interim.fields)
            if let offset = interim.integer("Upload-Offset"), offset > acknowledged { acknowledged = offset }
        }
    }

    private func locate(_ location: String) throws {
        locations.insert(location)
        if locations.count > 1 {
            cancel()
            throw ReferenceStop.failed
        }
        if upload == nil { upload = place.resolving(location) }
        remember()
    }

    private func stopIfUnwanted() throws {
        guard let maxSize, maxSize < size else { return }
        if !client.has(.doesNotCancelTooLarge) { cancel() }
        throw ReferenceStop.failed
    }

    private func cancel() {
        guard let upload else { return }
        _ = try? exchange(Request("DELETE", upload.target, fields(for: upload)), at: upload)
    }

    private func note(_ fields: Fields) {
        guard fields.contains("Upload-Limit"),
            let members = try? OrderedDictionary(parsing: fields.values("Upload-Limit"))
        else { return }
        let known = ["max-size", "max-append-size", "min-append-size", "max-age"]
        var limits: [String: Int64] = [:]
        for (key, member) in members where known.contains(key) {
            guard case .item(let item) = member, case .integer(let value) = item.value else { return }
            limits[key] = Int64(value)
        }
        if client.has(.takesFirstLimit), let text = fields["Upload-Limit"], text.hasPrefix("max-size=1,") {
            limits["max-size"] = 1
        }
        maxSize = limits["max-size"]
        if let told = limits["max-append-size"] { most = min(most ?? .max, told) }
        least = limits["min-append-size"] ?? 0
        expires = limits["max-age"].map { SystemClock.monotonicNanoseconds() + $0 * 1_000_000_000 }
    }

    // MARK: - Memory

    private func remember() {
        guard let upload, !client.has(.forgetsState) else { return }
        try? "\(upload.url)\n\(source)".write(toFile: memory, atomically: true, encoding: .utf8)
    }

    private func restore() throws {
        guard let text = try? String(contentsOfFile: memory, encoding: .utf8) else { return }
        let lines = text.split(separator: "\n").map(String.init)
        guard lines.count == 2, lines[1] == source else { throw ReferenceStop.failed }
        upload = Endpoint(lines[0])
        phase = .retrieve
    }
}
