import Foundation
import HTTPSemantics
import StructuredFields
import SystemCalls

@testable import ConformanceKit

extension ReferenceUploading {
    // MARK: - Answers

    func adopt(_ offset: Int64?) throws {
        guard let offset else { throw ReferenceFailure.failed }
        if offset < acknowledged && !client.has(.acceptsLowerOffset) { throw ReferenceFailure.failed }
        if offset > acknowledged, client.has(.rejectsHigherOffset) { throw ReferenceFailure.failed }
        if offset > size {
            guard client.has(.acceptsImpossibleOffset) else { throw ReferenceFailure.failed }
            acknowledged = size
            return
        }
        if offset > acknowledged { progress() }
        acknowledged = offset
        remember()
    }

    func redirection(_ response: Response, from endpoint: Endpoint) -> Endpoint? {
        guard [307, 308].contains(response.status), redirections < 5 else { return nil }
        redirections += 1
        return response.location.flatMap(endpoint.resolving)
    }

    func handleResponse(_ response: Response, isLast: Bool, count: Int64, isCreation: Bool) throws -> Bool {
        if isCreation, let moved = redirection(response, from: creationEndpoint) {
            creationEndpoint = moved
            upload = nil
            return false
        }
        if !isCreation, let moved = upload.flatMap({ redirection(response, from: $0) }) {
            upload = moved
            return false
        }
        let isComplete = profile.isComplete(response)
        if let location = response.location, isCreation,
            isComplete == false || client.has(.treatsApplicationLocationAsError)
        {
            if upload == nil || !client.has(.ignoresOtherLocation) { try locate(location) }
        }
        if response.isSuccessful, isLast, client.has(.treatsIncompleteAsSuccess) { return true }
        if isComplete == nil, client.has(.treatsSilenceAsFailure) { throw ReferenceFailure.failed }
        if isComplete == true {
            if response.isSuccessful { return true }
            guard client.has(.resumesFinalAnswers) else { throw ReferenceFailure.failed }
            phase = .retrieve
            return false
        }
        if response.isSuccessful {
            if isLast && isComplete == nil { return true }
            guard upload != nil else { throw ReferenceFailure.failed }
            adoptLimits(response.fields)
            progress()
            if isLast {
                phase = .retrieve
            } else {
                acknowledged = count
                phase = .append
            }
            return false
        }
        try handleRefusal(response, isCreation: isCreation, size: isCreation ? size : count - acknowledged)
        return false
    }

    private func handleRefusal(_ response: Response, isCreation: Bool, size count: Int64) throws {
        switch response.status {
        case 409:
            let reported = client.has(.ignoresOffsetOf409) ? nil : response.integer("Upload-Offset")
            if let reported, client.has(.acceptsLowerConflict) { acknowledged = reported }
            if let reported, reported != acknowledged { try adopt(reported) } else { phase = .retrieve }
            if client.has(.ignoresOffsetOf409) { phase = .append }
            try waitForNextAttempt()
        case 413:
            let known = maxAppendSize
            adoptLimits(response.fields)
            try stopIfTooLarge()
            if maxAppendSize == known, !client.has(.repeatsTooLarge) {
                maxAppendSize = max(1, min(count, maxAppendSize ?? .max) / 2)
            }
            phase = upload == nil ? .create : .retrieve
            if known == nil, response.limits == nil, !hasDiscovered, !client.has(.skipsDiscovery) {
                hasDiscovered = true
                phase = .discover
            }
        case 429, 503:
            try waitForNextAttempt(after: response.single("Retry-After").flatMap { Int64($0) })
            phase = upload == nil ? .create : .retrieve
        default:
            guard isCreation, client.has(.repeatsRefusals) else { throw ReferenceFailure.failed }
            try waitForNextAttempt()
        }
    }

    /// Handles the interim responses that have arrived.
    func handleInterims(_ connection: RawConnection, _ given: [InterimResponse]? = nil) throws {
        if given == nil { _ = try connection.responseHasBegun() }
        for interim in given ?? connection.interim {
            if client.has(.misreadsInterims), interim.status != 104, interim.status != 100 {
                throw ReferenceFailure.failed
            }
            let version = interim.integer("Upload-Draft-Interop-Version")
            let isAccepted = version == nil ? client.has(.acceptsMissingVersion) : client.has(.acceptsOtherVersions)
            let isOwn = version == Int64(profile.rank) && client.allowedBehavior != .ignoresInterims
            guard interim.status == 104, isOwn || isAccepted else { continue }
            if let location = interim.location { try locate(location) }
            adoptLimits(interim.fields)
            if let offset = interim.integer("Upload-Offset"), offset > acknowledged,
                !client.has(.acceptsLowerProgress)
            {
                acknowledged = offset
            }
        }
    }

    private func locate(_ location: String) throws {
        locations.insert(location)
        if locations.count > 1, !client.has(.ignoresSecondLocation) {
            cancel()
            throw ReferenceFailure.failed
        }
        if upload == nil {
            let isNaive = client.has(.ignoresDotSegments) && location.hasPrefix("..")
            upload = creationEndpoint.resolving(isNaive ? "/target/" + location.dropFirst(3) : location)
            if client.has(.printsUploads), let upload {
                try upload.url.write(toFile: task.output, atomically: true, encoding: .utf8)
            }
        }
        remember()
    }

    func stopIfTooLarge() throws {
        guard let maxSize, maxSize < size else { return }
        if !client.has(.doesNotCancelTooLarge) { cancel() }
        throw ReferenceFailure.failed
    }

    func cancel() {
        guard let upload else { return }
        _ = try? exchange(Request("DELETE", upload.target, fields(for: upload)), at: upload)
    }

    func adoptLimits(_ fields: Fields) {
        guard fields.contains("Upload-Limit"),
            let members = try? OrderedDictionary(parsing: fields.values("Upload-Limit"))
        else { return }
        let known = ["max-size", "max-append-size", "min-append-size", "max-age"]
        var limits: [String: Int64] = [:]
        for (key, member) in members where known.contains(key) {
            guard case .item(let item) = member, case .integer(let value) = item.value else {
                if client.has(.acceptsPartlyInvalidLimits) { continue }
                return
            }
            limits[key] = Int64(value)
        }
        if client.has(.usesFirstLimit), let text = fields["Upload-Limit"], text.hasPrefix("max-size=1,") {
            limits["max-size"] = 1
        }
        maxSize = limits["max-size"]
        if let reported = limits["max-append-size"] { maxAppendSize = min(maxAppendSize ?? .max, reported) }
        minAppendSize = limits["min-append-size"] ?? 0
        expires = limits["max-age"].map { SystemClock.monotonicNanoseconds() + $0 * 1_000_000_000 }
    }
}
