import HTTPSemantics
import SystemCalls

/// How bytes of a response's content were handled.
package enum ContentAcceptance {
    case accepted
    /// The bytes are not accepted now; they are offered again later.
    case held
    case refused
}

/// Receives a response: its heads, and its content for the sink.
package struct ResponseReceiver {
    private var reader: ResponseHeadReader
    private let isResponseToHead: Bool
    private let receive: @Sendable (ClientResponseHead) -> BodyDisposition
    private var disposition = BodyDisposition.collect(limit: 0, within: .zero)
    private var pacer: RatePacer?
    package private(set) var head: ClientResponseHead?
    package private(set) var content: [UInt8] = []
    package private(set) var received: Int64 = 0
    /// Bytes of the final head, once it is complete, and of the content. Interim responses and parts of a head do not
    /// count: a server can send them without end.
    package private(set) var moved: Int64 = 0
    private var headSize: Int64 = 0
    /// Whether anything was received, even an interim response or a part of a head.
    package private(set) var hasBegun = false
    /// The time until which content is awaited, in monotonic nanoseconds; `nil`: no limit.
    package private(set) var deadline: Int64?
    /// Whether enough content was received.
    package private(set) var isSatisfied = false
    /// The size of the content according to the head; `nil` if the framing marks its end.
    private var length: Int64?
    package private(set) var isHeld = false
    /// Whether the hold lasts until the sink is ready.
    package private(set) var isAwaitingSink = false
    private let wake: @Sendable () -> Void
    package private(set) var resumesAt: Int64?
    package private(set) var failure: TransportFailure?

    /// - Parameter wake: called when a sink that was not ready is ready.
    package init(_ request: TransportRequest, pacer: RatePacer?, wake: @escaping @Sendable () -> Void) {
        self.wake = wake
        reader = ResponseHeadReader(base: request.parsedURI ?? RequestURI(request.uri))
        isResponseToHead = request.method == .head
        receive = request.receive
        self.pacer = pacer
    }

    /// Whether all of the content was received. False if its size is not known in advance.
    package var isComplete: Bool { head != nil && length == received }

    package mutating func release() {
        isHeld = false
        isAwaitingSink = false
        resumesAt = nil
    }

    /// Handles a header line.
    /// - Returns: the event to report, if any. If ``failure`` was set, the exchange ends.
    package mutating func header(_ line: UnsafeRawBufferPointer) -> TransportEvent? {
        hasBegun = true
        headSize += Int64(line.count)
        switch reader.read(line) {
        case .more: return nil
        case .interim(let head):
            headSize = 0
            return .interim(head)
        case .final(let head):
            self.head = head
            moved += headSize
            length = contentLength(of: head)
            disposition = receive(head)
            if case .collect(_, let time) = disposition {
                deadline = SystemClock.monotonicNanoseconds() + time.nanoseconds
            }
            if case .abort = disposition { failure = .canceled }
            return .head(head)
        case .refused(let failure):
            self.failure = failure
            return nil
        }
    }

    /// Handles content, as fast as the rate and the sink allow.
    package mutating func write(_ bytes: UnsafeRawBufferPointer, now: Int64) -> ContentAcceptance {
        if let available = pacer?.available(at: now), available <= 0 {
            isHeld = true
            resumesAt = pacer?.nextTime
            return .held
        }
        if case .write(let sink) = disposition, !sink.isReady(orCall: wake) {
            isHeld = true
            isAwaitingSink = true
            return .held
        }
        switch disposition {
        case .collect(let limit, _):
            let room = max(limit - content.count, 0)
            content += UnsafeRawBufferPointer(rebasing: bytes.prefix(room))
            guard bytes.count <= room else {
                received += Int64(room)
                isSatisfied = true
                return .refused
            }
        case .write(let sink):
            do throws(Errno) {
                try sink.write(bytes)
            } catch {
                failure = .sinkFailed(error)
                return .refused
            }
        case .abort: return .refused
        }
        pacer?.spend(bytes.count)
        received += Int64(bytes.count)
        moved += Int64(bytes.count)
        return .accepted
    }

    /// Handles input that libcurl has not read, if it is the beginning of a response in HTTP/1.1.
    package mutating func receive(unread bytes: [UInt8]) -> [TransportEvent] {
        guard bytes.starts(with: Array("HTTP/1.".utf8)) else { return [] }
        var events: [TransportEvent] = []
        var remaining = bytes[...]
        while head == nil, failure == nil, let end = remaining.firstIndex(of: UInt8(ascii: "\n")) {
            remaining[...end].withUnsafeBytes { line in
                if let event = header(line) { events.append(event) }
            }
            remaining = remaining[(end + 1)...]
        }
        // Chunked content is not decoded here, because the head is sufficient.
        guard let length, failure == nil else { return events }
        pacer = nil
        _ = remaining.prefix(Int(clamping: length)).withUnsafeBytes { write($0, now: 0) }
        return events
    }

    /// The length of the content according to the head (RFC 9112 section 6.3).
    private func contentLength(of head: ClientResponseHead) -> Int64? {
        if isResponseToHead || head.status == .noContent || head.status == .notModified { return 0 }
        if head.fields.contains("Transfer-Encoding") { return nil }
        let values = head.fields.values("Content-Length")
        guard values.count == 1 || Set(values).count == 1, let value = values.first.flatMap({ Int64($0) }), value >= 0
        else { return nil }
        return value
    }
}

/// Parses the heads of a response, interim and final, from its header lines.
///
/// A strict reader is for responses that are forwarded. It refuses every head that the next recipient could interpret
/// differently, and heads of an unusual size.
package struct ResponseHeadReader {
    package enum Outcome {
        case more
        case interim(ClientResponseHead)
        case final(ClientResponseHead)
        case refused(TransportFailure)
    }

    /// The maximum number of bytes in one header section, including the status line.
    package static let maxSize = 256 << 10
    /// The maximum number of bytes for a strict reader, and its maximum number of interim responses.
    package static let (maxStrictSize, maxStrictInterims) = (32 << 10, 100)

    /// The URI of the request, against which `Location` is resolved; `nil`: it is not resolved.
    private let base: RequestURI?
    private var statusLine: (status: Status, version: String)?
    private var lines: [Fields.Field] = []
    private var size = 0
    private let isStrict: Bool
    private var interims = 0
    /// Whether the final head was read. Only trailers follow it, which are not merged into it.
    private var isOver = false

    package init(base: RequestURI?, isStrict: Bool = false) {
        self.base = base
        self.isStrict = isStrict
    }

    /// Whether the next line has to be a status line.
    var isAwaitingStatusLine: Bool { statusLine == nil && !isOver }

    /// Reads the next line, including its line ending.
    package mutating func read(_ line: UnsafeRawBufferPointer) -> Outcome {
        if isOver { return .more }
        size += line.count
        guard size <= (isStrict ? Self.maxStrictSize : Self.maxSize) else {
            return .refused(.protocolViolation("The header section is too large."))
        }
        var end = line.count
        while end > 0, line[end - 1] == UInt8(ascii: "\n") || line[end - 1] == UInt8(ascii: "\r") { end -= 1 }
        let text = UnsafeRawBufferPointer(rebasing: line[..<end])
        if isStrict, !Fields.isValidValue(text) {
            return .refused(.protocolViolation("A line of the head contains a control character."))
        }
        guard statusLine != nil else { return begin(text) }
        if text.isEmpty { return finish() }
        let colon = text.firstIndex(of: UInt8(ascii: ":"))
        let name = colon.map { String(decoding: text[..<$0], as: UTF8.self) }
        // This includes folded lines, and white space before a colon.
        if isStrict, name.map(Fields.isValidName) != true {
            return .refused(.protocolViolation("A line of the head is not a field."))
        }
        if text.first == UInt8(ascii: " ") || text.first == UInt8(ascii: "\t") {
            // obs-fold (RFC 9112 section 5.2): the line continues the one before.
            if let last = lines.popLast() {
                lines.append(Fields.Field(name: last.name, value: last.value + " " + trimmed(text)))
            }
        } else if let colon, let name {
            let value = trimmed(UnsafeRawBufferPointer(rebasing: text[(colon + 1)...]))
            lines.append(Fields.Field(name: name, value: value))
        }
        return .more
    }

    /// The number of lines for which memory is allocated at first.
    private static let usualCount = 12

    private mutating func begin(_ text: UnsafeRawBufferPointer) -> Outcome {
        // HTTP-version SP status-code [ SP reason-phrase ] (RFC 9112 section 4)
        let space = text.firstIndex(of: UInt8(ascii: " ")) ?? text.count
        let digits = text.dropFirst(space + 1).prefix { $0 != UInt8(ascii: " ") }
        guard text.starts(with: (isStrict ? "HTTP/1." : "HTTP/").utf8), digits.count == 3,
            digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { return .refused(.protocolViolation("The status line is invalid.")) }
        let code = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        let hasKnownVersion = space == 8 && UInt8(ascii: "0")...UInt8(ascii: "9") ~= text[7]
        guard code >= 100, !isStrict || hasKnownVersion && code < 600 else {
            return .refused(.protocolViolation("The status line is invalid."))
        }
        statusLine = (
            Status(rawValue: code), String(decoding: UnsafeRawBufferPointer(rebasing: text[..<space]), as: UTF8.self)
        )
        lines.reserveCapacity(Self.usualCount)
        return .more
    }

    private mutating func finish() -> Outcome {
        guard let (status, version) = statusLine else { return .more }
        let fields = Fields(lines: lines)
        let locations = base == nil ? [] : fields.values("Location")
        let location = locations.count == 1 ? base?.location(locations[0]) : nil
        let head = ClientResponseHead(status: status, fields: fields, location: location, version: version)
        statusLine = nil
        lines = []
        size = 0
        if status == .switchingProtocols {
            return .refused(.protocolViolation("The server switched to a protocol that was not requested."))
        }
        if isStrict, let mistake = strictMistake(in: head) { return .refused(.protocolViolation(mistake)) }
        if status.isInformational {
            interims += 1
            guard !isStrict || interims <= Self.maxStrictInterims else {
                return .refused(.protocolViolation("There are too many interim responses."))
            }
            return .interim(head)
        }
        isOver = true
        // Two recipients could choose different lengths and disagree about the end (RFC 9110 section 8.6).
        let lines = head.fields.values("Content-Length")
        if lines.count > 1 || lines.first?.utf8.contains(UInt8(ascii: ",")) == true {
            let lengths = lines.flatMap { $0.split(separator: ",") }.map { trimmed($0) }
            if Set(lengths).count > 1 {
                return .refused(.protocolViolation("The response has different values of Content-Length."))
            }
        }
        return .final(head)
    }

    // MARK: Strictness

    /// The mistake because of which a strict recipient rejects the framing of the content (RFC 9112 section 6).
    private func strictMistake(in head: ClientResponseHead) -> String? {
        let codings = head.fields.values("Transfer-Encoding")
        let lengths = head.fields.values("Content-Length")
        if !codings.isEmpty {
            guard codings.count == 1, codings[0].lowercased() == "chunked", head.version != "HTTP/1.0" else {
                return "The transfer coding is not supported."
            }
            guard lengths.isEmpty else { return "The response has both a length and a transfer coding." }
        }
        for length in lengths.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false) }) {
            let digits = trimmed(length)
            guard !digits.isEmpty, digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
                Int64(digits) != nil
            else { return "The value of Content-Length is invalid." }
        }
        return nil
    }

    private func trimmed(_ text: UnsafeRawBufferPointer) -> String {
        func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        var (start, end) = (0, text.count)
        while start < end, isSpace(text[start]) { start += 1 }
        while end > start, isSpace(text[end - 1]) { end -= 1 }
        let value = UnsafeRawBufferPointer(rebasing: text[start..<end])
        // A reader that is not strict belongs to a client that does not forward values, and may show them to people.
        return isStrict ? String(fieldBytes: value) : String(decoding: value, as: UTF8.self)
    }

    private func trimmed(_ text: Substring) -> String {
        var text = text.utf8
        while let first = text.first, first == UInt8(ascii: " ") || first == UInt8(ascii: "\t") { text.removeFirst() }
        while let last = text.last, last == UInt8(ascii: " ") || last == UInt8(ascii: "\t") { text.removeLast() }
        return String(decoding: text, as: UTF8.self)
    }
}
