import SystemCalls
import TLS

/// What a connection's bytes go through: a socket, or TLS over one.
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
    /// Connects, and shakes hands where that is wanted.
    func open(until deadline: Deadline) throws(WireFailure) -> any ByteStream {
        let socket: ConnectedSocket
        do throws(Errno) {
            socket = try ConnectedSocket(address, until: deadline.nanoseconds)
        } catch {
            throw .cannotConnect(error)
        }
        guard let trust else { return socket }
        do throws(TLSClientConnection.Failure) {
            return try TLSClientConnection(over: socket, to: host, trusting: trust, until: deadline.nanoseconds)
        } catch {
            throw .notSecured("\(error)")
        }
    }
}
