import CMicroHTTPD
import Glibc
import HTTPSemantics
import SystemCalls
import TLS

/// libmicrohttpd's connection during one callback. The handle must not be kept beyond it.
struct RequestConnection {
    private let handle: OpaquePointer
    let accepted: AcceptedConnection

    init?(_ handle: OpaquePointer) {
        guard let info = onward_mhd_connection_info(handle, .CONNECTION_INFO_SOCKET_CONTEXT),
            let raw = info.pointee.socket_context
        else { return nil }
        self.handle = handle
        accepted = Unmanaged<AcceptedConnection>.fromOpaque(raw).takeUnretainedValue()
    }

    /// What other threads see of the connection.
    var entry: ConnectionEntry { accepted.entry }

    /// For writing beside libmicrohttpd.
    var output: ConnectionOutput {
        ConnectionOutput(
            socket: entry.output,
            session: entry.credentials == nil ? nil : Self.session(of: handle).map(TLSSession.init))
    }

    static func session(of handle: OpaquePointer) -> UnsafeMutableRawPointer? {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_GNUTLS_SESSION)?.pointee.tls_session
    }

    static func descriptor(of handle: OpaquePointer) -> Int32? {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_CONNECTION_FD)?.pointee.connect_fd
    }

    /// Interim responses for a client of `version`; HTTP/1.0 knows none (RFC 9110 section 15.2).
    func interimChannel(version: ProtocolVersion, base: PublicBase) -> InterimChannel {
        InterimChannel(output: version >= .http11 ? output : nil, base: base)
    }

    func queue(_ response: OutgoingResponse, status: Status) -> Bool {
        MHD_queue_response(handle, UInt32(status.rawValue), response.handle) == .YES
    }
}
