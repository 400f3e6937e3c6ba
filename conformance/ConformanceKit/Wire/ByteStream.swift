import SystemCalls
import TLS

/// The stream that carries the bytes of a connection: a socket, or TLS over a socket.
package protocol ByteStream: AnyObject {
    func send(_ bytes: ArraySlice<UInt8>, until deadline: Int64) throws(Errno) -> Int
    func receive(into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64) throws(Errno) -> Int
    func awaitReadiness(until deadline: Int64) throws(Errno) -> ConnectedSocket.Readiness
    func endOutput()
    func resetOnClose()
}

extension ConnectedSocket: ByteStream {}
extension TLSClientConnection: ByteStream {}

extension Endpoint {
    /// Connects to the endpoint, with a TLS handshake for `https`.
    func open(until deadline: Deadline) throws(WireFailure) -> any ByteStream {
        let socket: ConnectedSocket
        do throws(Errno) {
            socket = try ConnectedSocket(address, until: deadline.nanoseconds)
        } catch {
            throw .cannotConnect(address, error)
        }
        guard let trust else { return socket }
        do throws(TLSClientConnection.Failure) {
            return try TLSClientConnection(over: socket, to: host, trusting: trust, until: deadline.nanoseconds)
        } catch {
            throw .notSecured("\(error)")
        }
    }
}
