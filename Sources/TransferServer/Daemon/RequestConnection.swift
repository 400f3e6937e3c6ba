import CMicroHTTPD
import Glibc
import HTTPSemantics
import SystemCalls
import TLS

/// The connection of libmicrohttpd during one callback. The handle must not be used after the callback.
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

    /// The part of the connection that other threads use.
    var entry: ConnectionEntry { accepted.entry }

    /// The output of the connection, for writes between those of libmicrohttpd.
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

    /// The channel for interim responses to a client of `version`; closed for HTTP/1.0 (RFC 9110 section 15.2).
    func interimChannel(version: ProtocolVersion, base: PublicBase) -> InterimChannel {
        guard version >= .http11 else { return InterimChannel(send: nil, base: base) }
        let output = output
        return InterimChannel(
            send: { bytes, timeout, isFollowed in output.send(bytes, timeout: timeout, isFollowed: isFollowed) },
            base: base)
    }

    /// Waits a moment for the remaining bytes of short content; returns whether all content has arrived.
    func receiveShortContent() -> Bool {
        accepted.receiveShortContent(entry.credentials == nil ? nil : Self.session(of: handle))
    }

    func queue(_ response: OutgoingResponse, status: Status) -> Bool {
        MHD_queue_response(handle, UInt32(status.rawValue), response.handle) == .YES
    }
}
