import CReceiveFilter
import Glibc
import HTTPSemantics
import SystemCalls
import TLS

/// A connection that the server accepted. This object exists from before libmicrohttpd first receives on the connection
/// until the descriptor is closed.
///
/// During this time libmicrohttpd receives through ``RequestReader``: `CReceiveFilter` calls this object in place of
/// recv(2) and `gnutls_record_recv`, and it calls this object in send(2) to find out whether a file follows the head.
/// The server reads the content of requests from this object. Everything except `entry` is used by only one thread at a
/// time: the thread that opens the connection, then the thread of the connection, then the thread that closes it.
final class AcceptedConnection {
    /// The part of the connection that other threads use.
    let entry: ConnectionEntry
    private let descriptor: Int32
    private var reader = RequestReader()
    /// Whether libmicrohttpd next sends a head, and then a file.
    var precedesFile = false
    /// The exchange whose content is awaited, if it can have a response for the client before all content has arrived.
    var awaiting: (any Exchange)?

    init(_ entry: ConnectionEntry, descriptor: Int32) {
        self.entry = entry
        self.descriptor = descriptor
    }

    /// Starts to receive through the filter.
    /// - Returns: false if the descriptor number is too large; the connection must then be closed.
    func beginFiltering() -> Bool {
        _ = Self.installation
        return onward_filter_add(descriptor, Unmanaged.passUnretained(self).toOpaque(), entry.credentials != nil)
    }

    /// Must be called before the descriptor is closed.
    func endFiltering() { onward_filter_remove(descriptor) }

    /// Returns the request whose head libmicrohttpd has received last. Each request is returned only once; nil if there
    /// is no new request.
    func nextRequest() -> ReceivedRequest? { reader.nextRequest() }

    /// The maximum number of bytes, and the time in nanoseconds, of ``receiveShortContent(_:)``.
    private static let (shortContent, shortTime) = (256 << 10, Int64(2_000_000))

    /// Receives the remaining content of the last request if it is short and arrives within a moment.
    /// - Parameter session: the GnuTLS session of the connection; nil without TLS.
    /// - Returns: whether all content has arrived.
    func receiveShortContent(_ session: UnsafeMutableRawPointer?) -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + Self.shortTime
        let awaitInput = { [entry] in entry.output.awaitInput(until: deadline) }
        if let session {
            return reader.receiveContent(atMost: Self.shortContent, from: SecureSource(session: session), awaitInput)
        }
        return reader.receiveContent(
            atMost: Self.shortContent, from: PlainSource(descriptor: descriptor), awaitInput)
    }

    /// Whether input has arrived that was not read yet.
    var hasInput: Bool { reader.hasInput }

    /// Reads the content of the last request, as far as it has arrived.
    /// - Parameter session: the GnuTLS session of the connection; nil without TLS.
    func readContent(
        into buffer: UnsafeMutableRawBufferPointer, _ session: UnsafeMutableRawPointer?
    ) -> RequestReader.Content {
        if let session { return reader.readContent(into: buffer, from: SecureSource(session: session)) }
        return reader.readContent(into: buffer, from: PlainSource(descriptor: descriptor))
    }

    /// Stops parsing: input that still arrives is discarded.
    func stopReading() {
        reader.discard()
        endFiltering()
    }

    // MARK: - Replacements of the functions that libmicrohttpd calls

    private static let installation: Void = onward_filter_install(
        { context, session, buffer, size in
            guard let context, let buffer else { return 0 }
            let connection = Unmanaged<AcceptedConnection>.fromOpaque(context).takeUnretainedValue()
            let output = UnsafeMutableRawBufferPointer(start: buffer, count: size)
            guard let session else {
                switch connection.reader.read(into: output, from: PlainSource(descriptor: connection.descriptor)) {
                case .bytes(let count): return count
                case .none: errno = EAGAIN
                case .end(0): return 0
                case .end(let code): errno = Int32(code)
                }
                return -1
            }
            switch connection.reader.read(into: output, from: SecureSource(session: session)) {
            case .bytes(let count): return count
            case .none: return SecureSource.tryAgain
            case .end(let code): return code
            }
        },
        { context in
            guard let context else { return false }
            let connection = Unmanaged<AcceptedConnection>.fromOpaque(context).takeUnretainedValue()
            return connection.hasInput || connection.awaiting?.hasEarlyResponse == true
        },
        { context in
            guard let context else { return -1 }
            let connection = Unmanaged<AcceptedConnection>.fromOpaque(context).takeUnretainedValue()
            return connection.awaiting?.checkInterval ?? -1
        },
        { context in
            guard let context else { return false }
            let connection = Unmanaged<AcceptedConnection>.fromOpaque(context).takeUnretainedValue()
            defer { connection.precedesFile = false }
            return connection.precedesFile
        })
}

private struct PlainSource: ByteSource {
    let descriptor: Int32
    var isRecordwise: Bool { false }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Arrival {
        while true {
            let count = onward_system_recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count > 0 { return .bytes(count) }
            if count == 0 { return .end(0) }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .none
            default: return .end(Int(errno))
            }
        }
    }
}

private struct SecureSource: ByteSource {
    /// The values of GNUTLS_E_AGAIN, GNUTLS_E_INTERRUPTED and GNUTLS_E_REHANDSHAKE.
    static let (tryAgain, interrupted, renegotiation) = (-28, -52, -37)

    let session: UnsafeMutableRawPointer
    var isRecordwise: Bool { true }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Arrival {
        while true {
            let count = onward_system_record_recv(session, buffer.baseAddress, buffer.count)
            if count > 0 { return .bytes(count) }
            switch count {
            case Self.interrupted: continue
            case Self.tryAgain: return .none
            case Self.renegotiation:
                TLSSession(session).refuseRenegotiation()
                return .end(count)
            default: return .end(count)
            }
        }
    }
}
