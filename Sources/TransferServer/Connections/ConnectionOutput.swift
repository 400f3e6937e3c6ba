import SystemCalls
import TLS

/// Writing to a connection between libmicrohttpd's own writes, in the clear or encrypted. For the connection's own thread.
struct ConnectionOutput: Sendable {
    private let socket: SocketOutput
    /// `nil` on a connection without TLS.
    private let session: TLSSession?

    init(socket: SocketOutput, session: TLSSession?) {
        self.socket = socket
        self.session = session
    }

    /// Sends all of `bytes`, waiting at most `timeout` milliseconds for the first byte to fit.
    func send(_ bytes: [UInt8], timeout: Int32) -> SocketOutput.Outcome {
        let outcome = session?.send(bytes, on: socket, timeout: timeout) ?? socket.send(bytes, timeout: timeout)
        // After a response from a file libmicrohttpd leaves the socket corked.
        if outcome == .sent { socket.push() }
        return outcome
    }

    /// Ends the output; input is still received.
    func endOutput() {
        session?.endOutput()
        socket.endOutput()
    }

    /// Reads and throws away what arrives, until the peer or ``ConnectionEntry/close(reason:)`` ends the connection, or so many
    /// bytes have arrived.
    func discardInput(atMost limit: Int64) { socket.discardInput(atMost: limit) }
}
