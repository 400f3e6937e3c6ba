import SystemCalls
import TLS

/// Writes to a connection between the writes of libmicrohttpd, with or without TLS. Use it only on the thread of the
/// connection.
struct ConnectionOutput: Sendable {
    private let socket: SocketOutput
    /// `nil` on a connection without TLS.
    private let session: TLSSession?

    init(socket: SocketOutput, session: TLSSession?) {
        self.socket = socket
        self.session = session
    }

    /// Sends all of `bytes`. Waits at most `timeout` milliseconds until the socket is writable.
    ///
    /// - Parameter isFollowed: whether more output follows immediately, with which these bytes may be sent.
    func send(_ bytes: [UInt8], timeout: Int32, isFollowed: Bool = false) -> SocketOutput.Outcome {
        let outcome =
            session?.send(bytes, on: socket, timeout: timeout)
            ?? socket.send(bytes, timeout: timeout, isFollowed: isFollowed)
        // After a response from a file libmicrohttpd leaves the socket corked.
        if outcome == .sent && !isFollowed { socket.push() }
        return outcome
    }

    /// Ends the output; input is still received.
    func endOutput() {
        session?.endOutput()
        socket.endOutput()
    }

    /// Reads and discards input until the connection ends or `limit` bytes have arrived.
    func discardInput(atMost limit: Int64) { socket.discardInput(atMost: limit) }
}
