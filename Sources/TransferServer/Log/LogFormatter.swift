import FoundationEssentials
import HTTPSemantics
import SystemCalls

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
            interimOmitted: summary.explanation?.omission?.word)
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
        case .text: return "\(line.time) \(line.level): \(line.request.map { $0 + " " } ?? "")\(text)"
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

    enum CodingKeys: String, CodingKey {
        case time, level, request, method, target, status, code, received, sent, milliseconds, end, reason, peer, proxy
        case scheme, host, principal, upload, offset, interim
        case interimOmitted = "interim_omitted"
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
