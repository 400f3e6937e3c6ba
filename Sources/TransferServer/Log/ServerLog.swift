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

    /// Says why a request with content got no interim response.
    func explain(_ summary: RequestSummary) {
        guard let explanation = summary.explanation else { return }
        let request = "\(LoggedMethod(summary.method).text) \(LoggedTarget(summary.target).text)"
        write(.info, "explain \(request): \(explanation.sentence)", request: summary.id)
    }

    /// The access log's line for one request.
    func record(_ summary: RequestSummary) {
        guard level >= .info else { return }
        let line = RequestLine(
            time: timestamp(), level: "info", request: summary.id.description,
            method: LoggedMethod(summary.method).text,
            target: LoggedTarget(summary.target).text, status: summary.status?.rawValue, code: summary.code,
            received: summary.received, sent: summary.sent, milliseconds: Double(summary.nanoseconds / 1000) / 1000,
            end: summary.interruption == nil ? "answered" : "interrupted", by: summary.interruption,
            peer: summary.origin.client, proxy: summary.origin.proxy, scheme: summary.origin.scheme,
            host: summary.origin.host?.serialized.printable(300), principal: summary.principal, upload: summary.upload,
            offset: summary.offset, interim: summary.explanation.map { $0.announcements + $0.offsets },
            no104: summary.explanation?.skip?.word)
        switch format {
        case .json: write(json: line)
        case .text:
            let status = line.status.map { "\($0)" } ?? "-"
            let code = line.code.map { " " + $0 } ?? ""
            write(
                text: "\(line.time) \(line.request) \(line.method) \(line.target) \(status)\(code) in=\(line.received)"
                    + " out=\(line.sent) ms=\(line.milliseconds)\(Self.uploadText(line))\(line.peer.map { " peer=" + $0 } ?? "")"
                    + (line.proxy.map { " proxy=" + $0 } ?? "")
                    + (line.principal.map { $0 == Identity.anonymous.principal ? "" : " principal=" + $0 } ?? "")
                    + (line.by.map { " by=\($0) interrupted" } ?? ""))
        }
    }

    private static func uploadText(_ line: RequestLine) -> String {
        (line.upload.map { " " + $0 } ?? "") + (line.offset.map { " offset=\($0)" } ?? "")
            + (line.no104.map { " no104=" + $0 } ?? line.interim.map { " 104=\($0)" } ?? "")
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
    let by, peer, proxy, scheme, host, principal: String?
    /// A hash of the upload's name, and what of it is durable.
    let upload: String?
    let offset: Int64?
    /// Interim responses of the upload protocol that were sent, and the reason where there were none.
    let interim: Int?
    let no104: String?
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
        // A name below /files/ is no secret, whatever it looks like.
        let isFile = (try? PathSegments(decoding: String(withoutQuery)))?.segments.first == "files"
        text = (isFile ? joined : Self.withoutSecrets(joined)).printable(300)
    }

    /// Cuts what looks like an upload's secret, wherever it stands.
    private static func withoutSecrets(_ target: String) -> String {
        var result = ""
        var run = ""
        func end() {
            result += run.count >= 32 ? run.prefix(8) + "…" : run
            run = ""
        }
        // An encoded character is no part of any URL that we gave out.
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

/// A request's method as it may be logged.
private struct LoggedMethod {
    let text: String

    init(_ method: String) { text = method.printable(32) }
}

extension String {
    /// The first characters, without any that could forge a line or reach a terminal.
    fileprivate func printable(_ limit: Int) -> String {
        String(
            String.UnicodeScalarView(
                unicodeScalars.prefix(limit).map { $0.value <= 0x20 || (0x7F..<0xA0).contains($0.value) ? "?" : $0 }))
    }
}
