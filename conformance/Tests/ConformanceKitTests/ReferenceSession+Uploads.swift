import Glibc
import HTTPSemantics
import StructuredFields
import SystemCalls

@testable import ConformanceKit

extension ReferenceSession {
    // MARK: - Creation

    func create(_ request: ReferenceRequest) throws -> ReferenceReply {
        guard let isComplete = request.isComplete else {
            if has(.announcesPlainRequests) { announce("/uploads/0", request) }
            writeContinue(to: request)
            var content: [UInt8] = []
            try input.content(request.framing) {
                content += $0
                return true
            }
            contentIsRead = true
            return ReferenceReply(status: 201, fields: [("Location", publish(content))])
        }
        let stated = statedLength(of: request)
        let declared = isComplete ? request.declaredLength : nil
        if let stated, let declared, stated != declared, !has(.acceptsCreationMismatch) {
            return refusal(400, request, type: "inconsistent-upload-length")
        }
        let length = stated ?? (request.rules >= 4 ? declared : nil)
        if let refused = refusalByLimits(length, request, offset: 0, isComplete: isComplete) { return refused }
        var upload = ReferenceUpload()
        upload.length =
            has(.forgetsLength) && stated != nil || has(.forgetsDerivedLength) && stated == nil ? nil : length
        if has(.inventsLength) { upload.length = length ?? 1_000_000 }
        upload.digests = digests(request.fields.values("Repr-Digest"))
        upload.wanted = request.fields["Want-Repr-Digest"]
        upload.holder = connection
        upload.owner = request.fields["Authorization"]
        if has(.refusesUnknownDigests), request.fields.contains("Repr-Digest"), upload.digests.isEmpty {
            return refusal(400, request)
        }
        let id = newIdentifier()
        upload.location = "/uploads/\(id)"
        let location = upload.location
        server.state.withLock { $0.uploads[id] = upload }
        announce(location, request)
        writeContinue(to: request)
        switch try receive(request, into: id, epoch: upload.epoch) {
        case .complete: break
        case let ending: return failed(ending, id, request)
        }
        if isComplete || completesAtLength(id, request) { return complete(id, request, isCreation: true) }
        let offset = server.state.withLock { state in
            state.uploads[id]?.holder = nil
            return state.uploads[id]?.bytes.count ?? 0
        }
        var fields = versionFields(request) + [completeness(false, request)]
        fields.append(("Location", has(.locatesDifferently) ? "http://127.0.0.1:\(server.port)\(location)" : location))
        if !has(.dropsLimitsOnCreated) { fields += limitFields(request) }
        if !(has(.dropsOffsetInVersion4) && request.rules == 4) { fields.append(offsetField(offset)) }
        return ReferenceReply(status: 201, fields: fields)
    }

    private func statedLength(of request: ReferenceRequest) -> Int64? {
        let isRead = request.rules >= 6 || (request.rules == 5 && server.uses(.completesAtLength))
        return isRead ? request.integer("Upload-Length") : nil
    }

    /// Whether the upload is complete because its content has reached the declared length.
    private func completesAtLength(_ id: String, _ request: ReferenceRequest) -> Bool {
        guard server.uses(.completesAtLength), (5...6).contains(request.rules) else { return false }
        return server.state.withLock { state in
            state.uploads[id].map { $0.length == Int64($0.bytes.count) } ?? false
        }
    }

    private func announce(_ location: String, _ request: ReferenceRequest) {
        let names = request.fields.contains("Upload-Draft-Interop-Version")
        let isAnnounced =
            request.draft != nil || (has(.announcesWithoutVersion) && !names)
            || (has(.announcesUnknownVersions) && names)
        guard isAnnounced, !has(.doesNotAnnounce) else { return }
        var fields = versionFields(request)
        if has(.echoesOtherVersion) { fields = [("Upload-Draft-Interop-Version", "1")] }
        if !has(.dropsLocationInAnnouncement) { fields.append(("Location", location)) }
        if !has(.dropsLimitsInAnnouncement) { fields += limitFields(request) }
        writeInterim(104, fields, to: request)
    }

    private func newIdentifier() -> String {
        if has(.sharesUploads) { return "00000000000000000000000000000000" }
        if has(.usesConsecutiveNames) {
            let number = server.state.withLock { state in
                state.count += 1
                return state.count
            }
            return String(number)
        }
        return (0..<32).map { _ in String(Int.random(in: 0..<16), radix: 16) }.joined()
    }

    // MARK: - Upload resources

    func answerUpload(_ request: ReferenceRequest, _ id: String) throws -> ReferenceReply {
        let life = server.limits.first { $0.0 == "max-age" }?.1 ?? 1_000_000
        let known = server.state.withLock { $0.uploads[id] }
        guard let upload = known, !upload.isGone,
            SystemClock.monotonicNanoseconds() - upload.created < life * 1_000_000_000, owns(upload, request)
        else {
            if has(.distinguishesForeignUploads), known != nil { return ReferenceReply(status: 403) }
            if has(.acceptsUnknownUploads), request.method == "HEAD" {
                return ReferenceReply(status: 204, fields: [completeness(false, request), offsetField(0)])
            }
            let content = Array("no such upload".utf8)
            return ReferenceReply(status: 404, fields: [("Content-Type", "text/plain")], content: content)
        }
        let appendFields = ["Upload-Offset", "Upload-Complete", "Upload-Incomplete"]
        if request.rules <= 6, ["HEAD", "DELETE"].contains(request.method),
            appendFields.contains(where: request.fields.contains)
        {
            return refusal(400, request)
        }
        switch request.method {
        case "HEAD": return retrieve(request, id)
        case "GET" where request.rules >= 7: return retrieve(request, id)
        case "PATCH": return try append(request, id)
        case "DELETE":
            if !has(.ignoresCancellation) {
                server.state.withLock { state in
                    state.uploads[id]?.takeOver()
                    state.uploads[id]?.isGone = true
                }
            }
            return ReferenceReply(status: 204, fields: versionFields(request))
        case "OPTIONS": return ReferenceReply(status: 204, fields: limitFields(request))
        default: return ReferenceReply(status: 405, fields: [("Allow", "HEAD, GET, PATCH, DELETE, OPTIONS")])
        }
    }

    private func owns(_ upload: ReferenceUpload, _ request: ReferenceRequest) -> Bool {
        if has(.allowsOtherPrincipals) || (has(.allowsOthersToFinish) && request.isComplete == true) { return true }
        return upload.owner == request.fields["Authorization"]
    }

    private func retrieve(_ request: ReferenceRequest, _ id: String) -> ReferenceReply {
        if has(.redirectsRetrievals) { return ReferenceReply(status: 302, fields: [("Location", "/files/")]) }
        if has(.waitsForStuckAppends) {
            _ = server.state.wait(until: Deadline(in: .seconds(60)).nanoseconds) { state in
                state.uploads[id]?.holder == nil ? () : nil
            }
        }
        let found = server.state.withLock { state -> ReferenceUpload? in
            if has(.forgetsResetUploads), let upload = state.uploads[id], upload.holder != nil, upload.bytes.isEmpty {
                state.uploads[id] = nil
            }
            if !has(.appendsLateBytes), !has(.keepsStuckConnections) { state.uploads[id]?.takeOver() }
            return state.uploads[id]
        }
        guard let upload = found else { return ReferenceReply(status: 404) }
        let offset = max(0, upload.bytes.count - (has(.lowersOffsets) ? 1 : 0))
        var fields = versionFields(request) + [completeness(upload.isComplete, request), offsetField(offset)]
        if let length = upload.length { fields.append(("Upload-Length", "\(length)")) }
        if !has(.dropsLimitsOnRetrieval) { fields += limitFields(request, of: upload) }
        if !has(.forgetsNoStore) { fields.append(("Cache-Control", "no-store")) }
        if request.method == "GET", has(.leaksContentOnGet) {
            return ReferenceReply(status: 200, fields: fields, content: upload.bytes)
        }
        return ReferenceReply(status: 204, fields: fields)
    }

    // MARK: - Append

    private func append(_ request: ReferenceRequest, _ id: String) throws -> ReferenceReply {
        if let refused = refusalByFields(request) { return refused }
        let statesComplete = request.isComplete ?? (request.rules == 3 ? true : request.rules <= 6 ? false : nil)
        let trailing = has(.treatsOneAsTrue) && ["1", "true"].contains(request.fields["Upload-Complete"] ?? "")
        guard let provided = offset(of: request), let stated = trailing ? true : statesComplete else {
            return refusal(400, request)
        }
        let begun = server.state.withLock { state -> ReferenceUpload? in
            if !has(.mixesRacers) && !has(.appendsLateBytes) { state.uploads[id]?.takeOver() }
            return state.uploads[id]
        }
        guard let upload = begun else { return ReferenceReply(status: 404) }
        let known = upload.bytes.count
        if upload.isComplete, provided == known, stated, request.declaredLength == 0, let final = upload.final {
            return final
        }
        if upload.isComplete, has(.changesCompleted) { return ReferenceReply(status: 204) }
        if provided != known {
            if has(.destroysOnMismatch) { server.state.withLock { $0.uploads[id]?.isGone = true } }
            if has(.answersMismatchWith400) { return refusal(400, request, offset: known) }
            var members = [("expected-offset", Int64(known)), ("provided-offset", Int64(provided))]
            if has(.swapsProblemMembers) { members = [(members[0].0, members[1].1), (members[1].0, members[0].1)] }
            let type = has(.namesOtherProblemType) ? "wrong-offset" : "mismatching-upload-offset"
            return refusal(409, request, type: type, offset: known, members: members)
        }
        if upload.isComplete {
            return refusal(
                400, request, type: (6...8).contains(request.rules) ? "completed-upload" : nil, offset: known)
        }
        if let refused = refusalByLength(request, id, upload, stated) { return refused }
        server.state.withLock { state in
            if state.uploads[id]?.epoch == upload.epoch { state.uploads[id]?.holder = connection }
        }
        writeContinue(to: request)
        switch try receive(request, into: id, epoch: upload.epoch) {
        case .complete: break
        case let ending: return failed(ending, id, request)
        }
        let isComplete = stated || (has(.usesTrailers) && input.trailers.contains { $0.hasSuffix(": ?1") })
        let now = server.state.withLock { state -> ReferenceUpload? in
            state.uploads[id]?.holder = nil
            return state.uploads[id]
        }
        server.state.notifyAll()
        guard let now else { return ReferenceReply(status: 404) }
        if isComplete || completesAtLength(id, request)
            || (has(.completesAtLength) && now.length == Int64(now.bytes.count))
        {
            return complete(id, request, isCreation: false)
        }
        var fields = versionFields(request) + [completeness(false, request)]
        if !(has(.dropsOffsetInVersion4) && request.rules == 4) { fields.append(offsetField(now.bytes.count)) }
        return ReferenceReply(
            status: request.rules <= 6 && !has(.answersOldAppendsWith204) ? 201 : 204,
            fields: fields + limitFields(request))
    }

    private func refusalByFields(_ request: ReferenceRequest) -> ReferenceReply? {
        let type = request.fields.values("Content-Type").first ?? ""
        let isRight =
            has(.comparesMediaTypeExactly)
            ? type == "application/partial-upload"
            : MediaType(parsing: type)?.matches("application/partial-upload") == true
        let shouldContinue = request.rules >= 6 || (request.rules == 5 && has(.requiresMediaTypeInVersion5))
        if shouldContinue && !isRight && !has(.acceptsOtherMediaType) {
            return refusal(415, request, fields: [("Accept-Patch", "application/partial-upload")])
        }
        return request.rules >= 7 && request.fields.contains("Content-Encoding") ? refusal(415, request) : nil
    }

    /// Returns the offset of an append, parsed incorrectly if the defect requires it.
    private func offset(of request: ReferenceRequest) -> Int? {
        let text = request.fields["Upload-Offset"] ?? ""
        if has(.acceptsPlus), text.hasPrefix("+") { return Int(text) }
        if has(.acceptsNegative), text.hasPrefix("-") { return Int(text.dropFirst()) }
        if has(.acceptsSixteenDigits), text.count > 15 { return Int(text) }
        if has(.acceptsDecimal), text.hasSuffix(".0") { return Int(text.dropLast(2)) }
        if has(.acceptsRepeatedOffset), let comma = text.firstIndex(of: ",") { return Int(text[..<comma]) }
        if has(.rejectsParameters), text.contains(";") { return nil }
        return request.integer("Upload-Offset").map { Int($0) }
    }

    private func refusalByLength(
        _ request: ReferenceRequest, _ id: String, _ upload: ReferenceUpload, _ isComplete: Bool
    ) -> ReferenceReply? {
        let offset = Int64(upload.bytes.count)
        if has(.refusesFinishAtLength), request.rules == 6, isComplete, upload.length == offset {
            return refusal(400, request, offset: upload.bytes.count)
        }
        let stated = statedLength(of: request)
        var indicated = stated.map { [$0] } ?? []
        if isComplete, request.rules >= 4, let declared = request.declaredLength, !has(.acceptsWrongRemainder) {
            let (sum, overflows) = offset.addingReportingOverflow(declared)
            if overflows { return refusal(400, request) }
            indicated.append(sum)
        }
        let known = upload.length ?? indicated.first
        let disagrees = indicated.contains { $0 != known } && !has(.acceptsOtherLength)
        let exceeds = request.declaredLength.map { known ?? .max < offset.addingReportingOverflow($0).0 } ?? false
        if disagrees || exceeds || known ?? offset < offset {
            return refusal(400, request, type: "inconsistent-upload-length", offset: upload.bytes.count)
        }
        if let refused = refusalByLimits(known, request, offset: offset, isComplete: isComplete) { return refused }
        let isForgotten = has(.forgetsLengthOfAppend) && stated == nil && upload.length == nil
        server.state.withLock { $0.uploads[id]?.length = isForgotten ? nil : known }
        return nil
    }

    private func refusalByLimits(
        _ length: Int64?, _ request: ReferenceRequest, offset: Int64, isComplete: Bool
    ) -> ReferenceReply? {
        func limit(_ name: String) -> Int64? { server.limits.first { $0.0 == name }?.1 }
        let declared = request.declaredLength ?? 0
        let (end, overflows) = offset.addingReportingOverflow(declared)
        if overflows || max(length ?? 0, end) > limit("max-size") ?? 999_999_999_999_999
            || declared > limit("max-append-size") ?? .max
        {
            return refusal(413, request, fields: limitFields(request))
        }
        let isExempt = isComplete || (declared == 0 && request.method == "POST") || request.declaredLength == nil
        if !isExempt, declared < limit("min-append-size") ?? 0 {
            return refusal(400, request, fields: limitFields(request))
        }
        return nil
    }

    // MARK: - Completion

    private func complete(_ id: String, _ request: ReferenceRequest, isCreation: Bool) -> ReferenceReply {
        server.state.withLock { state in
            guard var upload = state.uploads[id] else { return ReferenceReply(status: 404) }
            if let final = upload.final { return final }
            upload.holder = nil
            upload.isComplete = true
            var reply = ReferenceReply(status: 201)
            let isRight = upload.digests.allSatisfy { Self.digest($0.key, upload.bytes) == $0.value }
            if isRight || has(.acceptsWrongRepresentationDigest) {
                state.count += 1
                let name = "/files/\(state.count)-\(id.prefix(8))"
                state.files[name] = upload.bytes
                if request.rules <= 6 && isCreation && !has(.locatesFileInVersion6) {
                    reply.fields = [("Location", upload.location), ("Content-Location", name)]
                } else {
                    reply.fields = [(request.rules <= 6 && !isCreation ? "Content-Location" : "Location", name)]
                }
                reply.fields += wantedDigest(upload)
            } else {
                reply.status = 400
            }
            reply.fields += versionFields(request) + [completeness(!has(.reportsIncompleteAtEnd), request)]
            if !(has(.dropsOffsetInVersion4) && request.rules == 4) {
                reply.fields.append(offsetField(upload.bytes.count))
            }
            upload.final = reply
            state.uploads[id] = upload
            return reply
        }
    }

    private func publish(_ content: [UInt8]) -> String {
        server.state.withLock { state in
            state.count += 1
            let name = "/files/\(state.count)-plain"
            state.files[name] = content
            return name
        }
    }

    // MARK: - Digests

    func digests(_ lines: [String]) -> [String: [UInt8]] {
        guard let field = DigestField(fieldLines: lines) else { return [:] }
        return Dictionary(field.values.map { ($0.algorithm.rawValue, $0.bytes) }) { first, _ in first }
    }

    static func digest(_ algorithm: String, _ bytes: [UInt8]) -> [UInt8] {
        algorithm == "sha-256" ? SecureHash.sha256(bytes) : SecureHash.sha512(bytes)
    }

    private func wantedDigest(_ upload: ReferenceUpload) -> [(String, String)] {
        guard let wanted = upload.wanted, let best = DigestPreferences(fieldLines: [wanted])?.preferred else {
            return []
        }
        let value = Self.digest(best.rawValue, upload.bytes)
        return [("Repr-Digest", DigestField(values: [(best, value)]).serialized)]
    }
}
