import CMicroHTTPD
import HTTPSemantics
import SystemCalls

/// libmicrohttpd's connection during one callback. The handle must not be kept beyond it.
struct RequestConnection {
    private let handle: OpaquePointer
    /// What other threads see of the connection.
    let entry: ConnectionEntry

    init?(_ handle: OpaquePointer) {
        guard let info = onward_mhd_connection_info(handle, .CONNECTION_INFO_SOCKET_CONTEXT),
            let raw = info.pointee.socket_context
        else { return nil }
        self.handle = handle
        entry = Unmanaged<ConnectionEntry>.fromOpaque(raw).takeUnretainedValue()
    }

    static func descriptor(of handle: OpaquePointer) -> Int32? {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_CONNECTION_FD)?.pointee.connect_fd
    }

    /// Bytes of the request's head.
    var headSize: Int {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_REQUEST_HEADER_SIZE)?.pointee.header_size ?? 0
    }

    /// The request's field lines in their order. Values keep embedded NULs, so that they can be refused.
    func fields() -> Fields {
        var fields = Fields()
        withUnsafeMutablePointer(to: &fields) { pointer in
            _ = MHD_get_connection_values_n(
                handle, .HEADER_KIND,
                { context, _, name, nameSize, value, valueSize in
                    guard let fields = context?.assumingMemoryBound(to: Fields.self) else { return .NO }
                    fields.pointee.append(
                        name.map { text($0, nameSize) } ?? "", value.map { text($0, valueSize) } ?? "")
                    return .YES
                }, pointer)
        }
        return fields
    }

    /// Interim responses for a client of `version`; HTTP/1.0 knows none (RFC 9110 section 15.2).
    func interimChannel(version: ProtocolVersion) -> InterimChannel {
        InterimChannel(output: version >= .http11 ? entry.output : nil)
    }

    func queue(_ response: OutgoingResponse, status: Status) -> Bool {
        MHD_queue_response(handle, UInt32(status.rawValue), response.handle) == .YES
    }
}

private func text(_ start: UnsafePointer<CChar>, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
}
