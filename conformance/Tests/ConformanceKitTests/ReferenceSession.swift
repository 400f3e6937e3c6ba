import Glibc
import HTTPSemantics
import SystemCalls

@testable import ConformanceKit

/// One connection of the reference server. One thread uses it.
final class ReferenceSession {
    let server: ReferenceServer
    let connection: FileDescriptor
    let input: ReferenceInput
    private var isOpen = true
    /// Whether the content of the current request was read to its end.
    var contentIsRead = false

    init(_ server: ReferenceServer, _ connection: FileDescriptor) {
        self.server = server
        self.connection = connection
        input = ReferenceInput(connection)
        if server.uses(.acceptsHugeLengths) { input.accepted.insert(.hugeSizes) }
        if server.uses(.acceptsLineFeeds) { input.accepted.insert(.lineFeeds) }
    }

    func has(_ defect: Defect) -> Bool { server.has(defect) }

    func run() {
        while isOpen {
            do {
                guard let lines = try input.head() else { return }
                try serve(lines)
            } catch WireFailure.flood {
                end(ReferenceReply(status: 431), to: "GET")
            } catch WireFailure.malformed {
                end(ReferenceReply(status: 400), to: "GET")
            } catch {
                return
            }
        }
    }

    private func serve(_ lines: [String]) throws {
        let parts = lines[0].split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, let version = ProtocolVersion(parsing: parts[2]) else {
            return end(ReferenceReply(status: 400), to: "GET")
        }
        var fields = Fields()
        for line in readable(lines.dropFirst()) {
            guard let colon = line.firstIndex(of: ":") else { return end(ReferenceReply(status: 400), to: parts[0]) }
            let name = String(line[..<colon])
            let isHidden = has(.namesAreCaseSensitive) && name == "upload-offset"
            fields.append(
                isHidden ? "X-\(name)" : name, line[line.index(after: colon)...].trimmingPrefix(" ").description)
        }
        if has(.acceptsBothFramings), fields.contains("Transfer-Encoding") { fields.remove("Content-Length") }
        if has(.acceptsUnhostedRequests), !fields.contains("Host") { fields.append("Host", "a") }
        let head = RequestHead(method: Method(rawValue: parts[0]), target: parts[1], version: version, fields: fields)
        let framing: MessageFraming
        switch MessageFraming.evaluate(head) {
        case .success(let found): framing = found
        case .failure(let refusal):
            guard let known = Self.framing(of: head, despite: refusal, server.allowedBehavior) else {
                return end(ReferenceReply(status: refusal.status.rawValue), to: parts[0])
            }
            if !server.uses(.normalizesCodings) {
                try input.content(known) { _ in true }
                return write(ReferenceReply(status: refusal.status.rawValue), to: parts[0])
            }
            framing = known
        }
        var path = parts[1]
        if path.hasPrefix("http://") { path = "/" + path.dropFirst(7).drop { $0 != "/" }.dropFirst() }
        let draft = Self.draft(of: fields)
        let request = ReferenceRequest(
            method: parts[0], path: path, version: version, fields: fields, framing: framing, draft: draft)
        contentIsRead = framing == .none || framing == .length(0)
        if Expectation(fields: fields, version: version) == .unsupported {
            return finish(ReferenceReply(status: 417), to: request)
        }
        try finish(answer(request), to: request)
    }

    /// Returns the field lines as the server parses them. A defect or an allowed behavior changes lines with CR or NUL.
    private func readable(_ lines: ArraySlice<String>) -> [String] {
        lines.flatMap { line -> [String] in
            if has(.splitsLinesAtCR) { return line.split(separator: "\r").map(String.init) }
            if has(.endsValuesAtNUL) { return [String(line.prefix { $0 != "\0" })] }
            guard server.uses(.replacesControls) else { return [line] }
            return [line.replacing("\r", with: " ").replacing("\0", with: " ")]
        }
    }

    /// Returns the framing of a request that has to be refused; `nil` unless the allowed behavior needs this framing.
    private static func framing(
        of head: RequestHead, despite refusal: FramingRefusal, _ allowedBehavior: AllowedServerBehavior?
    ) -> MessageFraming? {
        switch (refusal.code, allowedBehavior) {
        case ("missing-host", .keepsConnectionWithoutHost), ("repeated-host", .keepsConnectionWithoutHost),
            ("invalid-host", .keepsConnectionWithoutHost):
            var repaired = head
            repaired.fields.remove("Host")
            repaired.fields.append("Host", "a")
            return try? MessageFraming.evaluate(repaired).get()
        case ("unknown-transfer-coding", .skipsCodings), ("chunked-repeated", .skipsCodings),
            ("chunked-repeated", .normalizesCodings):
            return .chunked
        case ("content-length-overflow", .acceptsHugeLengths): return .length(.max)
        default: return nil
        }
    }

    private static func draft(of fields: Fields) -> Int? {
        let probe = ReferenceRequest(
            method: "", path: "", version: .http11, fields: fields, framing: .none, draft: nil)
        return probe.integer("Upload-Draft-Interop-Version").flatMap { (3...8).contains($0) ? Int($0) : nil }
    }

    private func answer(_ request: ReferenceRequest) throws -> ReferenceReply {
        if request.method == "OPTIONS", request.fields.contains("Access-Control-Request-Method") {
            return preflightReply(request)
        }
        if request.path.hasPrefix("/uploads/") {
            return try answerUpload(request, String(request.path.dropFirst(9)))
        }
        if request.method == "OPTIONS" {
            guard request.path == "/files/" || request.path == "*" else { return ReferenceReply(status: 404) }
            return ReferenceReply(
                status: 204, fields: limitFields(request) + [("Accept-Patch", "application/partial-upload")])
        }
        guard request.path.hasPrefix("/files/") else { return ReferenceReply(status: 404) }
        switch request.method {
        case "POST" where request.path == "/files/": return try create(request)
        case "GET", "HEAD": return file(request)
        default: return ReferenceReply(status: 405, fields: [("Allow", "POST, GET, HEAD, OPTIONS")])
        }
    }

    // MARK: - Pages of other origins

    private func preflightReply(_ request: ReferenceRequest) -> ReferenceReply {
        let isUpload = request.path.hasPrefix("/uploads/")
        var names = "content-type, upload-complete, upload-draft-interop-version, upload-length"
        if isUpload { names += ", upload-offset" }
        return ReferenceReply(
            status: 204,
            fields: [
                ("Access-Control-Allow-Methods", isUpload ? "HEAD, PATCH, DELETE" : "POST"),
                ("Access-Control-Allow-Headers", isUpload || !has(.allowsPagesOnlyAppends) ? names : "content-type"),
            ])
    }

    /// The fields with which a browser shows a response to a page of another origin.
    private func pageFields(_ request: ReferenceRequest) -> [(String, String)] {
        let exposed = "Location, Upload-Offset, Upload-Complete, Upload-Length, Upload-Limit"
        let isHidden = request.method == "DELETE" && has(.hidesFieldsOfCancellations)
        return [("Access-Control-Allow-Origin", "*")] + (isHidden ? [] : [("Access-Control-Expose-Headers", exposed)])
    }

    // MARK: - Output

    private func finish(_ reply: ReferenceReply, to request: ReferenceRequest) {
        var reply = reply
        if request.fields.contains("Origin") { reply.fields += pageFields(request) }
        if !contentIsRead && !has(.readsLeftoverAsRequest) { reply.closes = true }
        if reply.closes, server.uses(.resetsConnections) {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(connection.rawValue, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            write(reply, to: request.method)
            isOpen = false
            return
        }
        if server.uses(.endsConnections) { reply.closes = true }
        if request.version < .http11 || request.fields["Connection"]?.lowercased() == "close" { reply.closes = true }
        if reply.closes { end(reply, to: request.method) } else { write(reply, to: request.method) }
    }

    private func end(_ reply: ReferenceReply, to method: String) {
        var reply = reply
        reply.fields.append(("Connection", "close"))
        write(reply, to: method)
        shutdown(connection.rawValue, Int32(SHUT_WR))
        input.drain()
        isOpen = false
    }

    private func write(_ reply: ReferenceReply, to method: String) {
        let end = has(.endsLinesWithLF) ? "\n" : "\r\n"
        var text = "HTTP/1.1 \(reply.status) Status\(end)"
        for (name, value) in reply.fields { text += "\(name): \(value)\(end)" }
        let isContentForbidden = reply.status == 204 || reply.status == 304
        if !isContentForbidden { text += "Content-Length: \(reply.content.count)\(end)" }
        var bytes = Array((text + end).utf8)
        if !isContentForbidden && (method != "HEAD" || has(.sendsContentToHead)) { bytes += reply.content }
        send(bytes)
    }

    func writeInterim(_ status: Int, _ fields: [(String, String)], to request: ReferenceRequest) {
        guard request.version >= .http11 || has(.sendsInterimToOldHTTP) else { return }
        var text = "HTTP/1.1 \(status) Interim\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if has(.announcesContentInInterim) { text += "Content-Length: 0\r\n" }
        send(Array((text + "\r\n").utf8))
    }

    func writeContinue(to request: ReferenceRequest) {
        guard Expectation(fields: request.fields, version: request.version) == .continue100, !contentIsRead,
            !has(.withholdsContinue)
        else { return }
        writeInterim(100, [], to: request)
    }

    private func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    connection.rawValue, $0.baseAddress?.advanced(by: sent), $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else {
                isOpen = false
                return
            }
            sent += count
        }
    }

    // MARK: - Fields

    func limitFields(_ request: ReferenceRequest, of upload: ReferenceUpload? = nil) -> [(String, String)] {
        if has(.sendsEmptyLimits) { return [("Upload-Limit", "")] }
        let age = upload.map { (SystemClock.monotonicNanoseconds() - $0.created) / 1_000_000_000 } ?? 0
        let members = server.limits.map { name, value in
            name == "max-age" ? "\(request.rules == 6 ? "expires" : name)=\(max(0, value - age))" : "\(name)=\(value)"
        }
        return [("Upload-Limit", members.isEmpty ? "min-size=0" : members.joined(separator: ", "))]
    }

    func versionFields(_ request: ReferenceRequest) -> [(String, String)] {
        request.draft.map { [("Upload-Draft-Interop-Version", "\($0)")] } ?? []
    }

    func completeness(_ isComplete: Bool, _ request: ReferenceRequest) -> (String, String) {
        guard request.rules == 3 && !has(.sendsUploadCompleteInVersion3) else {
            return ("Upload-Complete", isComplete ? "?1" : "?0")
        }
        return ("Upload-Incomplete", isComplete ? "?0" : "?1")
    }

    func offsetField(_ offset: Int) -> (String, String) {
        ("Upload-Offset", has(.paddedOffsets) ? "0\(offset)" : "\(offset)")
    }

    /// Returns a response that refuses a request as the draft requires.
    func refusal(
        _ status: Int, _ request: ReferenceRequest, type: String? = nil, offset: Int? = nil,
        members: [(String, Int64)] = [], fields: [(String, String)] = []
    ) -> ReferenceReply {
        var reply = ReferenceReply(status: status, fields: fields)
        reply.fields.append(completeness(has(.marksRefusalsComplete), request))
        if status == 409, has(.dropsCompletenessOn409) { reply.fields.removeLast() }
        if let offset, status != 409 || !has(.dropsOffsetOn409) { reply.fields.append(offsetField(offset)) }
        var json = "{\"title\":\"Refused\",\"status\":\(has(.reportsOtherStatus) ? 200 : status)"
        if let type { json += ",\"type\":\"\(ProblemDocument.registry)\(type)\"" }
        if has(.showsPaths) { json += ",\"detail\":\"open /var/lib/reference: no such file\"" }
        for (name, value) in members { json += ",\"\(name)\":\(value)" }
        reply.fields.append(("Content-Type", "application/problem+json"))
        reply.content = Array((json + "}").utf8)
        return reply
    }
}
