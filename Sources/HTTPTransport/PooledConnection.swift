import CCurl
import HTTPSemantics
import SystemCalls

/// A connection that libcurl makes, with TLS if the URI of the request requires it. Its user sends and receives bytes.
final class PooledConnection: @unchecked Sendable {
    // One thread at a time uses a connection: the thread that has removed it from the idle connections.

    /// The result of a call that does not wait.
    enum Transfer {
        /// The number of bytes, at least one.
        case bytes(Int)
        /// Nothing can be received or sent now.
        case none
        /// The peer has ended its output.
        case end
        case failed(TransportFailure)
    }

    private static let bufferSize = 64 << 10

    private let uri: String
    private let isSecure: Bool
    private let isStallLimit: Bool
    private let multi = MultiHandle()
    private let easy: EasyHandle
    /// Memory for received bytes.
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: PooledConnection.bufferSize, alignment: 16)
    /// The socket of the connection; `nil` until the connection is made.
    private(set) var socket: SocketState?
    /// Whether bytes can have arrived that poll(2) does not report, because they are decrypted already.
    private(set) var canHaveInput = false
    /// Whether an earlier request has used the connection.
    private(set) var isReused = false
    /// The time since which no request uses the connection, in monotonic nanoseconds.
    private(set) var idleSince: Int64 = 0

    /// - Returns: `nil` if libcurl has not enough memory.
    init?(_ request: TransportRequest) {
        guard let easy = EasyHandle() else { return nil }
        self.easy = easy
        uri = request.uri
        isSecure = request.isSecure
        isStallLimit = request.connectTimeout == request.stallTimeout
        easy.prepareConnection(request)
        easy.connectOnly(bufferSize: Self.bufferSize)
        guard multi.add(easy, delegate: nil) else { return nil }
    }

    deinit {
        // This closes the connection.
        multi.remove(easy)
        buffer.deallocate()
    }

    // MARK: While the connection is made

    /// Continues to make the connection.
    /// - Returns: whether the connection is made; `nil` if that is not known yet.
    func connect() -> Result<Void, TransportFailure>? {
        multi.perform()
        guard let (_, code) = multi.nextEnded() else { return nil }
        guard code == CURLE_OK, let descriptor = easy.activeSocket else {
            return .failure(failure(code, isConnected: false))
        }
        socket = SocketState(descriptor: descriptor)
        canHaveInput = isSecure
        return .success(())
    }

    /// Waits until ``connect()`` has something to do, or until this time has passed.
    func awaitConnection(_ milliseconds: Int32) { multi.wait(milliseconds) }

    // MARK: While the connection is open

    /// Receives bytes, without waiting, and calls `body` with them. `body` may change this memory.
    func receive(_ body: (UnsafeMutableRawBufferPointer) -> Void) -> Transfer {
        switch easy.receive(into: buffer) {
        case .bytes(let count):
            // A stream socket that returns fewer bytes than requested has no more input.
            canHaveInput = isSecure || count == buffer.count
            body(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
            return .bytes(count)
        case .none:
            canHaveInput = false
            return .none
        case .end: return .end
        case .failed(let code): return .failed(failure(code, isConnected: true))
        }
    }

    /// Passes bytes to the kernel, without waiting.
    func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        switch easy.send(bytes) {
        case .bytes(let count): .bytes(count)
        case .none: .none
        case .end: .end
        case .failed(let code): .failed(failure(code, isConnected: true))
        }
    }

    private func failure(_ code: CURLcode, isConnected: Bool) -> TransportFailure {
        TransportFailure(code, of: easy, requestURI: uri, isConnected: isConnected, isStallLimit: isStallLimit)
    }

    // MARK: Between two requests

    /// Records that no request uses the connection from this time on.
    func becomeIdle(at now: Int64) {
        idleSince = now
        isReused = true
    }

    /// Whether the connection is open, and no input has arrived that belongs to no request.
    var isUsable: Bool {
        guard isSecure else { return socket?.isQuiet == true }
        // The peer can have sent session tickets, which are no input of a request.
        if case .none = receive({ _ in }) { return true }
        return false
    }
}
