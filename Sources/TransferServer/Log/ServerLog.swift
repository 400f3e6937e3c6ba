import FoundationEssentials
import HTTPSemantics
import SystemCalls
import UploadStorage

/// Writes one line an event to standard error, as text or JSON. Neither tokens nor whole upload URLs ever get here.
final class ServerLog: Sendable {
    private let format: LogFormat
    private let level: LogLevel
    private let output: Monitor<LogOutput>

    init(format: LogFormat, level: LogLevel, output: LogOutput = LogOutput()) {
        self.format = format
        self.level = level
        self.output = Monitor(output)
    }

    func error(_ message: String, request: RequestID? = nil) { write(.error, message, request: request) }
    func warning(_ message: String, request: RequestID? = nil) { write(.warning, message, request: request) }
    func info(_ message: String) { write(.info, message, request: nil) }

    /// The access log's line for one request.
    func record(_ summary: RequestSummary) {
        guard level >= .info else { return }
        let line = RequestLine(
            time: timestamp(), level: "info", request: summary.id.description, method: summary.method,
            target: LoggedTarget(summary.target).text, status: summary.status?.rawValue, code: summary.code,
            received: summary.received, sent: summary.sent, milliseconds: Double(summary.nanoseconds / 1000) / 1000,
            end: summary.isInterrupted ? "interrupted" : "answered")
        switch format {
        case .json: write(json: line)
        case .text:
            let status = line.status.map { "\($0)" } ?? "-"
            let code = line.code.map { " " + $0 } ?? ""
            write(
                text: "\(line.time) \(line.request) \(line.method) \(line.target) \(status)\(code) in=\(line.received)"
                    + " out=\(line.sent) ms=\(line.milliseconds)\(summary.isInterrupted ? " interrupted" : "")")
        }
    }

    private func write(_ severity: LogLevel, _ message: String, request: RequestID?) {
        guard level >= severity else { return }
        let line = MessageLine(
            time: timestamp(), level: severity.rawValue, request: request?.description, message: message)
        switch format {
        case .json: write(json: line)
        case .text: write(text: "\(line.time) \(line.level): \(line.request.map { $0 + " " } ?? "")\(message)")
        }
    }

    private func write(json line: some Encodable) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        guard let data = try? encoder.encode(line) else { return }
        write(text: String(decoding: data, as: UTF8.self))
    }

    private func write(text: String) {
        output.withLock { $0.write(text + "\n") }
    }

    private func timestamp() -> String {
        Date(timeIntervalSince1970: Double(SystemClock.realtimeNanoseconds() / 1_000_000) / 1000)
            .formatted(
                .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
    }
}

private struct RequestLine: Encodable {
    let time, level, request, method, target: String
    let status: Int?
    let code: String?
    let received, sent: Int64
    let milliseconds: Double
    let end: String
}

private struct MessageLine: Encodable {
    let time, level: String
    let request: String?
    let message: String
}

/// A request target as it may be logged: the secret of an upload's URL is cut, control characters cannot forge lines.
struct LoggedTarget {
    let text: String

    init(_ target: String) {
        let withoutQuery = target.prefix { $0 != "?" }
        var segments = withoutQuery.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        // Requests are routed by what segments decode to.
        let index = segments.firstIndex { (try? PathSegments(decoding: "/" + $0))?.segments == ["uploads"] }
        if let index, index + 1 < segments.count {
            // Whatever follows may hold the secret in some spelling.
            let secret = segments[index + 1]
            segments = Array(segments[...index]) + [UploadID(parsing: secret)?.description ?? "…"]
        }
        let joined = segments.joined(separator: "/")
        text = String(
            String.UnicodeScalarView(
                joined.unicodeScalars.prefix(300).map { $0.value < 0x20 || $0.value == 0x7F || $0 == " " ? "?" : $0 }))
    }
}
