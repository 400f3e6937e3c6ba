import FoundationEssentials
import HTTPSemantics
import SystemCalls
import UploadStorage

/// One line of the log. The writing thread formats it, so that requests do not wait.
enum LogEntry: Sendable {
    /// The access log line of one request.
    case request(RequestSummary, time: Int64)
    case message(LogLevel, String, request: RequestID?, time: Int64)

    /// Bytes that the entry occupies in the queue, approximately.
    var size: Int {
        switch self {
        case .request(let summary, _): 512 + summary.target.utf8.count + summary.method.utf8.count
        case .message(_, let text, _, _): 64 + text.utf8.count
        }
    }
}

/// Formats log entries. Use it from one thread.
struct LogFormatter {
    private let format: LogFormat
    private let encoder: JSONEncoder
    /// The last formatted second since 1970 and its text, because most lines have the same second as the line before.
    private var second: (number: Int64, text: String) = (.min, "")

    init(_ format: LogFormat) {
        self.format = format
        encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
    }

    /// The line without the newline at its end.
    mutating func line(_ entry: LogEntry) -> String {
        switch entry {
        case .request(let summary, let time): line(summary, at: time)
        case .message(let level, let text, let request, let time): message(level, text, request, at: time)
        }
    }

    private mutating func line(_ summary: RequestSummary, at time: Int64) -> String {
        let line = RequestLine(
            time: timestamp(time), level: "info", request: summary.id.description,
            method: summary.method.printable(32),
            target: LoggedTarget(summary.target).text, status: summary.status?.rawValue, code: summary.code,
            received: summary.received, sent: summary.sent, milliseconds: Double(summary.nanoseconds / 1000) / 1000,
            end: summary.interruption == nil ? "answered" : "interrupted", reason: summary.interruption,
            peer: summary.origin.client, proxy: summary.origin.proxy, scheme: summary.origin.scheme,
            host: summary.origin.host?.serialized.printable(300), principal: summary.principal,
            upload: summary.upload?.description, offset: summary.offset,
            interim: summary.explanation.map { $0.announcements + $0.offsets },
            interimOmitted: summary.explanation?.omission?.word,
            route: summary.forwarding == nil ? nil : summary.route, origin: summary.forwarding?.outcome.rawValue,
            originMilliseconds: summary.forwarding.map { Double($0.nanoseconds / 1000) / 1000 },
            check: summary.check?.outcome.rawValue,
            checkMilliseconds: summary.check.map { Double($0.nanoseconds / 1000) / 1000 })
        switch format {
        case .json: return json(line)
        case .text: return line.text
        }
    }

    private mutating func message(
        _ level: LogLevel, _ text: String, _ request: RequestID?, at time: Int64
    ) -> String {
        let line = MessageLine(
            time: timestamp(time), level: level.rawValue, request: request?.description, message: text)
        switch format {
        case .json: return json(line)
        case .text: return "\(line.time) \(line.level): \(line.request.map { $0 + " " } ?? "")\(text.onOneLine)"
        }
    }

    private func json(_ line: some Encodable) -> String {
        (try? encoder.encode(line)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }

    /// - Parameter time: nanoseconds since 1970.
    private mutating func timestamp(_ time: Int64) -> String {
        let (number, remainder) = time.quotientAndRemainder(dividingBy: 1_000_000_000)
        if number != second.number {
            let text = Date(timeIntervalSince1970: Double(number)).formatted(
                .iso8601.year().month().day().time(includingFractionalSeconds: false).timeZone(separator: .omitted))
            second = (number, String(text.prefix { $0 != "Z" }))
        }
        let milliseconds = remainder / 1_000_000
        var text = ""
        text.reserveCapacity(24)
        text += second.text
        text += milliseconds < 10 ? ".00" : milliseconds < 100 ? ".0" : "."
        text += String(milliseconds)
        text += "Z"
        return text
    }
}

private struct RequestLine: Encodable {
    let time, level, request, method, target: String
    let status: Int?
    let code: String?
    let received, sent: Int64
    let milliseconds: Double
    let end: String
    let reason, peer, proxy, scheme, host, principal: String?
    /// A hash of the upload's ID, and its durable offset.
    let upload: String?
    let offset: Int64?
    /// The number of interim responses that were sent, and the reason if none was sent.
    let interim: Int?
    let interimOmitted: String?
    /// The route, how the exchange with its application ended, and the milliseconds until its response.
    let route, origin: String?
    let originMilliseconds: Double?
    /// How the check of the file ended, and its milliseconds.
    let check: String?
    let checkMilliseconds: Double?

    enum CodingKeys: String, CodingKey {
        case time, level, request, method, target, status, code, received, sent, milliseconds, end, reason, peer, proxy
        case scheme, host, principal, upload, offset, interim
        case interimOmitted = "interim_omitted"
        case route, origin
        case originMilliseconds = "origin_milliseconds"
        case check
        case checkMilliseconds = "check_milliseconds"
    }

    /// The line in the format `text`. Every request has a line, so it is built without intermediate strings.
    var text: String {
        var text = ""
        text.reserveCapacity(256)
        for word in [time, request, method] {
            text += word
            text += " "
        }
        text += target
        text += " "
        text += status.map { String($0) } ?? "-"
        func append(_ name: String, _ value: String?) {
            guard let value else { return }
            text += name
            text += value
        }
        append(" ", code)
        append(" in=", String(received))
        append(" out=", String(sent))
        append(" ms=", "\(milliseconds)")
        append(" ", upload)
        append(" offset=", offset.map { String($0) })
        append(" interim_omitted=", interimOmitted)
        if interimOmitted == nil { append(" 104=", interim.map { String($0) }) }
        append(" route=", route)
        append(" origin=", origin)
        append(" origin_ms=", originMilliseconds.map { "\($0)" })
        append(" check=", check)
        append(" check_ms=", checkMilliseconds.map { "\($0)" })
        append(" peer=", peer)
        append(" proxy=", proxy)
        append(" principal=", principal == Identity.anonymous.principal ? nil : principal)
        append(" reason=", reason)
        if reason != nil { text += " interrupted" }
        return text
    }
}

private struct MessageLine: Encodable {
    let time, level: String
    let request: String?
    let message: String
}

/// A request target for the log: the secret in the URL of an upload is removed, and control characters are replaced.
struct LoggedTarget {
    let text: String

    init(_ target: String) {
        let withoutQuery = target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target[..<$0] } ?? target[...]
        let decoded = try? PathSegments(decoding: String(withoutQuery)).segments
        // A name below /files/ is not a secret.
        let isFile = decoded?.first == "files"
        if let decoded, !decoded.contains("uploads") {
            text = (isFile ? String(withoutQuery) : Self.withoutSecrets(String(withoutQuery))).printable(300)
            return
        }
        var segments = withoutQuery.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        // Requests are routed by decoded segments.
        let index = segments.firstIndex { (try? PathSegments(decoding: "/" + $0))?.segments == ["uploads"] }
        if let index, index + 1 < segments.count {
            // The next segment can contain the secret in any encoding.
            let secret = segments[index + 1]
            segments = Array(segments[...index]) + [UploadID(parsing: secret)?.description ?? "…"]
        }
        let joined = segments.joined(separator: "/")
        text = (isFile ? joined : Self.withoutSecrets(joined)).printable(300)
    }

    /// Removes everything that could be the secret of an upload.
    private static func withoutSecrets(_ target: String) -> String {
        if target.utf8.count < 32 && !target.utf8.contains(UInt8(ascii: "%")) { return target }
        var result = ""
        var run = ""
        func end() {
            result += run.count >= 32 ? run.prefix(8) + "…" : run
            run = ""
        }
        // The server creates no URLs with encoded characters, so everything from the first encoded character on is
        // removed.
        let plain = target.prefix { $0 != "%" }
        for character in plain {
            if character.isHexDigit {
                run.append(character)
            } else {
                end()
                result.append(character)
            }
        }
        end()
        return plain.count < target.count ? result + "…" : result
    }
}

extension String {
    /// The text with "?" in place of control characters, which could look like another line of the log.
    var onOneLine: String {
        guard unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return self }
        return String(
            String.UnicodeScalarView(
                unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }

    /// The first `limit` characters, with "?" in place of spaces and control characters.
    func printable(_ limit: Int) -> String {
        if utf8.count <= limit && utf8.allSatisfy({ (0x21...0x7E).contains($0) }) { return self }
        return String(
            String.UnicodeScalarView(
                unicodeScalars.prefix(limit).map { $0.value <= 0x20 || (0x7F..<0xA0).contains($0.value) ? "?" : $0 }))
    }
}
