import HTTPSemantics
import ResumableUpload

@testable import ResumableTransfer

extension DownloadMachine {
    static let now: Int64 = 1_800_000_000

    /// The state machine of a download that has 40 of 100 bytes, unless the parameters differ.
    static func sample(
        position: Int64 = 40, entityTag: String? = "\"a\"", lastModified: Int64? = nil, total: Int64? = 100,
        contentCoding: String? = nil, digest: String? = nil, change: (inout RetryPolicy) -> Void = { _ in }
    ) -> DownloadMachine {
        var retry = RetryPolicy()
        retry.delays = [.zero]
        change(&retry)
        let representation = DownloadRepresentation(
            entityTag: entityTag.flatMap { EntityTag(parsing: $0) },
            lastModified: lastModified.map { HTTPDate(secondsSinceEpoch: $0).serialized },
            date: HTTPDate(secondsSinceEpoch: now).serialized, total: total, contentCoding: contentCoding,
            digest: digest)
        return DownloadMachine(representation, position: position, retry: retry, random: { 1 })
    }

    /// The next request; `nil` if the next step is not a request.
    mutating func nextRequest() -> ClientRequest? {
        if case .send(let request) = next() { request } else { nil }
    }

    /// Moves to the next request and receives this answer to it.
    mutating func answer(
        _ status: Status, _ fields: Fields, position: Int64? = nil, ending: ContentEnding = .complete,
        location: ResolvedLocation? = nil
    ) {
        _ = next()
        responded(
            ClientResponseHead(status: status, fields: fields, location: location),
            position: position ?? self.position, ending: ending, now: Self.now)
    }

    /// Returns the way in which the machine would receive this response to the next request.
    mutating func reception(_ status: Status, _ fields: Fields) -> DownloadReception {
        _ = next()
        return reception(of: ClientResponseHead(status: status, fields: fields))
    }

    var failure: ClientFailure? {
        var ahead = self
        if case .failed(let failure) = ahead.next() { return failure }
        return nil
    }

    /// The length of the wait in seconds if the next step is a wait.
    var wait: Double? {
        var ahead = self
        guard case .wait(let duration, _) = ahead.next() else { return nil }
        return Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}

extension ClientRequest {
    /// The offset of the first byte that a download requests; 0: everything.
    var start: Int64 {
        fields["Range"].flatMap { Int64($0.dropFirst("bytes=".count).dropLast()) } ?? 0
    }
}
