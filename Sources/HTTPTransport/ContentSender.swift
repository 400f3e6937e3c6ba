import CCurl
import HTTPSemantics
import SystemCalls

/// Copies the content of a request from the source into libcurl's buffer.
package struct ContentSender {
    private let content: RequestContent
    private let source: (any UploadSource)?
    /// The number of bytes that all reads have passed to libcurl, and the number without the last read.
    package private(set) var readCount: Int64 = 0
    private var readCountBeforeLastRead: Int64 = 0
    /// Bytes that HTTP/1.1's framing of chunks has added (RFC 9112 section 7.1).
    private var framing: Int64 = 0
    /// Whether the source has reported its end.
    private var hasSourceEnded = false
    private var pacer: RatePacer?
    private var isGateOpen: Bool
    /// Whether the end of the content was reported to libcurl.
    private var isEnded = false
    /// Whether the content was aborted: then libcurl is informed of an end before the actual end.
    package private(set) var isAborted = false
    /// Whether libcurl waits for content.
    package private(set) var isHeld = false
    /// Whether the hold lasts until the source has more bytes.
    package private(set) var isAwaitingSource = false
    private let wake: @Sendable () -> Void
    /// The time at which the rate allows more content.
    package private(set) var resumesAt: Int64?
    package private(set) var failure: TransportFailure?

    /// - Parameter wake: called when a source that had no bytes has bytes again, or has ended.
    package init(
        _ content: RequestContent, of source: (any UploadSource)?, hasGate: Bool, pacer: RatePacer?,
        wake: @escaping @Sendable () -> Void
    ) {
        self.wake = wake
        self.content = content
        self.source = source
        self.pacer = pacer
        // Empty content does not wait for the gate.
        isGateOpen = !hasGate || content.count == 0
    }

    package var isGated: Bool { !isGateOpen }

    package mutating func openGate() { isGateOpen = true }

    /// Ends the hold: libcurl requests content again.
    package mutating func release() {
        isHeld = false
        isAwaitingSource = false
        resumesAt = nil
    }

    /// Ends the content before its actual end: the server does not need more.
    package mutating func abort() { isAborted = true }

    package mutating func hold() -> Int {
        isHeld = true
        return Int(CURL_READFUNC_PAUSE)
    }

    /// The maximum number of bytes that the content still has.
    private var room: Int64 {
        let maxCount: Int64? = if case .remaining(_, let limit) = content { limit } else { content.count }
        return maxCount.map { max($0 - readCount, 0) } ?? .max
    }

    package mutating func read(into buffer: UnsafeMutableRawBufferPointer, now: Int64) -> Int {
        if isAborted { return 0 }
        if !isGateOpen { return hold() }
        var maxCount = min(Int64(buffer.count), room)
        if maxCount == 0 {
            isEnded = true
            return 0
        }
        if let available = pacer?.available(at: now) {
            guard available > 0 else {
                resumesAt = pacer?.nextTime
                return hold()
            }
            maxCount = min(maxCount, available)
        }
        let offset = content.start + readCount
        let count: Int
        do throws(SourceError) {
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(maxCount)])
            guard let read = try read(into: part, at: offset) else {
                isAwaitingSource = true
                return hold()
            }
            count = min(read, part.count)
        } catch {
            failure = .sourceFailed(at: offset, error)
            return Int(CURL_READFUNC_ABORT)
        }
        guard count > 0 else {
            hasSourceEnded = true
            isEnded = content.count == nil
            if isEnded { return 0 }
            failure = .sourceFailed(at: offset, .unavailable(at: offset))
            return Int(CURL_READFUNC_ABORT)
        }
        readCountBeforeLastRead = readCount
        readCount += Int64(count)
        if content.count == nil { framing += Int64(String(count, radix: 16).utf8.count + 4) }
        pacer?.spend(count)
        return count
    }

    /// - Returns: `nil` if the source does not have the byte yet.
    private func read(
        into part: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SourceError) -> Int? {
        if let source = source as? any GrowingSource { return try source.read(into: part, at: offset, orCall: wake) }
        return try source?.read(into: part, at: offset) ?? 0
    }

    /// Whether the content can be read again from its beginning: libcurl repeats a request by itself if a connection
    /// that it reuses turns out to be closed. After bytes were passed to libcurl, the state machine decides whether to
    /// repeat the request.
    package func canRewind() -> Bool { readCount == 0 }

    /// The number of bytes of content that were passed to the kernel.
    /// - Parameter bytes: the number of bytes that libcurl has counted.
    package func sent(_ bytes: Int64, isHTTP2: Bool) -> Int64 {
        let counted = isHTTP2 ? bytes : bytes - framing
        // libcurl requests more bytes only after it has sent the previous ones.
        return min(max(counted, readCountBeforeLastRead), readCount)
    }

    /// Whether all of the content was passed to the kernel.
    package func isSent(_ bytes: Int64, isHTTP2: Bool) -> Bool {
        (isEnded || content.count == readCount) && sent(bytes, isHTTP2: isHTTP2) == readCount
    }

    /// Whether the end of the content was reached. If its length is known: whether all of it was passed to libcurl. If
    /// its length is unknown: whether the source ends after the bytes that were sent.
    /// - Parameter sent: the number of bytes that were sent. It can be less than the number of bytes that were passed
    ///   to libcurl; the end of the source is then not the end of the sent bytes.
    package func isAtEnd(sent: Int64) -> Bool {
        if let count = content.count { return readCount == count }
        guard sent == readCount else { return false }
        if hasSourceEnded { return true }
        guard let length = source?.length else { return false }
        return content.start + readCount >= length
    }
}

/// The header lines of a request in libcurl's notation, in two blocks of memory.
struct HeaderLines {
    private let text: UnsafeMutableRawBufferPointer
    private let nodes: UnsafeMutablePointer<curl_slist>
    private var textEnd = 0
    private var count = 0

    private static let framing = ["Expect", "Content-Length", "Transfer-Encoding"]

    init(_ request: TransportRequest) {
        // Each line has a separator, and a zero at its end. The first lines are those without a value.
        text = .allocate(
            byteCount: request.fields.reduce(64) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }, alignment: 1)
        nodes = .allocate(capacity: request.fields.count + 2)
        // This line removes libcurl's own Expect field: libcurl would wait for a second, and before 8.7 a 104 would not
        // end the wait.
        append("Expect", ":", "")
        // libcurl would describe content that it gets with the request as a form.
        if !request.fields.contains("Content-Type") { append("Content-Type", ":", "") }
        for field in request.fields where !Self.framing.contains(where: field.name.equalsIgnoringASCIICase) {
            let value = field.value.drop { $0 == " " || $0 == "\t" }
            // libcurl reads "Name:" as a request to remove its own line.
            append(field.name, value.isEmpty ? ";" : ": ", value, isOpaque: field.value.hasOpaqueBytes)
        }
    }

    /// Frees the memory. No other call may follow.
    func deallocate() {
        text.deallocate()
        nodes.deallocate()
    }

    /// The list, which is valid until the memory is freed.
    var list: UnsafeMutablePointer<curl_slist> { nodes }

    /// - Parameter isOpaque: whether some bytes of the value are not UTF-8.
    private mutating func append(_ name: String, _ separator: String, _ value: Substring, isOpaque: Bool = false) {
        let start = text.baseAddress?.advanced(by: textEnd)
        copy(name[...])
        copy(separator[...])
        if isOpaque { copy(String(value).fieldBytes) } else { copy(value) }
        text[textEnd] = 0
        textEnd += 1
        (nodes + count).initialize(
            to: curl_slist(data: start?.assumingMemoryBound(to: CChar.self), next: nil))
        if count > 0 { nodes[count - 1].next = nodes + count }
        count += 1
    }

    private mutating func copy(_ part: Substring) {
        var part = part
        part.withUTF8 { copy($0) }
    }

    private mutating func copy(_ bytes: some Collection<UInt8>) {
        UnsafeMutableRawBufferPointer(rebasing: text[textEnd...]).copyBytes(from: bytes)
        textEnd += bytes.count
    }
}
