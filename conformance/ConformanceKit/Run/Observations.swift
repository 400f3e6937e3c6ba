import HTTPSemantics
import StructuredFields

/// Checks every exchange of a run against rules that do not depend on the case. Cases at the end of the run report the
/// violations.
final class Observations: WireObserver {
    /// A rule for every exchange; the raw value is the ID of the case that reports its violations.
    enum Rule: String, CaseIterable {
        case wellFormed = "9112/well-formed"
        case canonicalFields = "4.1/canonical-fields"
        case limitValues = "4.1.4/values"
        case appendInterimLocation = "4.4/interim-without-location"
        case interimContent = "9110/interim-without-content"
        case versionEcho = "B/echo"
        case problemStatus = "9457/problem-status"
        case problemInternals = "13/no-internals"
        case redirection = "4.3/no-found-redirect"
        case offsetDecrease = "4.1.1/offset-never-decreases"
        case sameLocation = "4.2/same-location"
    }

    private var violations: [Rule: [String]] = [:]
    /// The reported offsets of each upload with their times of arrival. Each offset is higher than the one before it.
    private var offsets: [Endpoint: [(value: Int64, arrivedAt: Int64)]] = [:]
    /// The number of final responses that were checked.
    private(set) var responses = 0

    func violations(of rule: Rule) -> [String] { violations[rule] ?? [] }

    func observe(anomaly: String, in transcript: Transcript) { record(.wellFormed, anomaly) }

    func observe(_ response: Response, to request: Request, at endpoint: Endpoint) {
        responses += 1
        let place = endpoint.at(request.target)
        let isAppend = request.method == "PATCH" && request.has("Upload-Offset")
        checkFields(response, request)
        checkLocations(response, request)
        checkProblem(response, request)
        if ["HEAD", "DELETE"].contains(request.method), [301, 302].contains(response.status) {
            record(.redirection, "\(request.method): \(response.summary)")
        }
        checkOffsets(response, request, place, isAppend: isAppend)
    }

    func observe(_ interim: InterimResponse, to request: Request, at endpoint: Endpoint) {
        let isAppend = request.method == "PATCH" && request.has("Upload-Offset")
        for name in ["Content-Length", "Transfer-Encoding"] where interim.fields.contains(name) {
            record(.interimContent, "\(interim.status) with \(name)")
        }
        guard interim.status == 104 else { return }
        checkFields(interim, request)
        if isAppend, interim.fields.contains("Location") {
            record(.appendInterimLocation, "104 to PATCH: \(interim.summary)")
        }
        let named = request.fields.filter { $0.0 == "Upload-Draft-Interop-Version" }.map(\.1)
        if named.count == 1, let version = Int64(named[0]), interim.integer("Upload-Draft-Interop-Version") != version {
            record(.versionEcho, "104 to version \(version): \(interim.summary)")
        }
    }

    private func checkLocations(_ response: Response, _ request: Request) {
        guard request.has("Upload-Complete"), request.method != "PATCH" || !request.has("Upload-Offset") else { return }
        var locations = response.announcements.flatMap { $0.fields.values("Location") }
        if response.boolean("Upload-Complete") == false { locations += response.fields.values("Location") }
        if Set(locations).count > 1 { record(.sameLocation, locations.joined(separator: " and ")) }
    }

    private func checkFields(_ carrier: some FieldCarrier, _ request: Request) {
        for name in ["Upload-Offset", "Upload-Length", "Upload-Draft-Interop-Version"]
        where carrier.fields.contains(name) {
            guard let value = carrier.integer(name), carrier.single(name) == String(value) else {
                record(.canonicalFields, "\(name): \(carrier.fields[name] ?? "")")
                continue
            }
        }
        for name in ["Upload-Complete", "Upload-Incomplete"] where carrier.fields.contains(name) {
            if !["?0", "?1"].contains(carrier.single(name)) {
                record(.canonicalFields, "\(name): \(carrier.fields[name] ?? "")")
            }
        }
        if carrier.fields.contains("Upload-Limit") { checkLimits(carrier) }
    }

    private func checkLimits(_ carrier: some FieldCarrier) {
        let text = carrier.fields["Upload-Limit"] ?? ""
        guard let dictionary = try? OrderedDictionary(parsing: text), !dictionary.isEmpty else {
            return record(.limitValues, "Upload-Limit: \(text)")
        }
        let known = ["max-size", "min-size", "max-append-size", "min-append-size", "max-age", "expires"]
        for (key, member) in dictionary where known.contains(key) {
            guard case .item(let item) = member, case .integer(let value) = item.value, value >= 0 else {
                record(.limitValues, "Upload-Limit: \(text)")
                continue
            }
        }
    }

    private func checkOffsets(_ response: Response, _ request: Request, _ place: Endpoint, isAppend: Bool) {
        let isRetrieval = ["HEAD", "GET"].contains(request.method)
        var upload = place
        if !isAppend && !isRetrieval {
            guard let location = response.announcements.first?.location, let found = place.resolving(location)
            else { return }
            upload = found
        }
        // A server can answer concurrent requests in any order, so only offsets that arrived before this request was
        // sent set the minimum.
        var reported = offsets[upload] ?? []
        var floor = reported.last { $0.arrivedAt < response.requestedAt }?.value ?? 0
        func look(at offset: Int64, in carrier: String, arrivedAt: Int64) {
            if offset < floor {
                record(.offsetDecrease, "Upload-Offset: \(offset) in \(carrier) after \(floor) had been reported")
            }
            floor = max(floor, offset)
            if offset > reported.last?.value ?? 0 { reported.append((offset, arrivedAt)) }
        }
        for interim in response.announcements {
            if let offset = interim.integer("Upload-Offset") {
                look(at: offset, in: "a 104", arrivedAt: interim.arrivedAt)
            }
        }
        if [200, 201, 202, 204, 409].contains(response.status), let offset = response.integer("Upload-Offset") {
            look(at: offset, in: "\(response.status)", arrivedAt: response.arrivedAt)
        }
        offsets[upload] = reported
    }

    private func checkProblem(_ response: Response, _ request: Request) {
        guard response.status >= 400, !response.content.isEmpty else { return }
        if let trace = Self.internals(in: response.text) { record(.problemInternals, "\(response.status): \(trace)") }
        let type = response.single("Content-Type").flatMap { MediaType(parsing: $0) }
        guard type?.matches("application/problem+json") == true else {
            if response.text.contains("http-problem-types#") {
                record(.problemStatus, "a problem document as \(response.fields["Content-Type"] ?? "no media type")")
            }
            return
        }
        guard let problem = ProblemDocument(response.content) else {
            return record(.problemStatus, "not a JSON object: \(response.text.prefix(80))")
        }
        if let status = problem.status, status != response.status {
            record(.problemStatus, "\(response.status) with the member status \(status)")
        }
    }

    /// Returns a description of a path or a stack trace in a text; `nil` if there is none.
    private static func internals(in text: String) -> String? {
        let signs = [
            "Traceback (most recent", "stack trace", "goroutine ", "Fatal error", "Exception in thread", "    at ",
            "/home/", "/var/", "/usr/", "/tmp/", "/etc/", "/root/", ".go:", ".swift:", ".java:", ".py\"",
        ]
        guard let sign = signs.first(where: { text.contains($0) }) else { return nil }
        return "'\(sign)' in '\(text.prefix(200))'"
    }

    private func record(_ rule: Rule, _ text: String) {
        if violations[rule, default: []].count < 20 { violations[rule, default: []].append(text) }
    }
}

extension Request {
    func has(_ name: String) -> Bool { fields.contains { $0.0.lowercased() == name.lowercased() } }
}
