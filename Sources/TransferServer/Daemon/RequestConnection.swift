import CMicroHTTPD
import Glibc
import HTTPSemantics
import SystemCalls
import TLS

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

    /// Bytes of the request's head.
    var headSize: Int {
        onward_mhd_connection_info(handle, .CONNECTION_INFO_REQUEST_HEADER_SIZE)?.pointee.header_size ?? 0
    }

    /// The request's field lines in their order, and whether the head holds nothing else.
    ///
    /// libmicrohttpd hides lines that are folded, have no name or hold a NUL: it joins, drops or cuts them. Where the
    /// head was not looked at when it arrived (``ConnectionThread/isFollowed``) that shows in the places: names and values
    /// lie where they arrived, one behind the other, so anything but CR and LF between them, or before the end, is more
    /// than is told here. No byte is read for that.
    func fields(after line: RequestStart, targetSize: Int) -> (fields: Fields, isPlain: Bool) {
        let isFollowed = ConnectionThread.isFollowed
        var head = Head(end: line.end, isFollowed: isFollowed)
        withUnsafeMutablePointer(to: &head) { pointer in
            _ = MHD_get_connection_values_n(
                handle, .HEADER_KIND,
                { context, _, name, nameSize, value, valueSize in
                    guard let head = context?.assumingMemoryBound(to: Head.self) else { return .NO }
                    head.pointee.append(name, nameSize, value, valueSize)
                    return .YES
                }, pointer)
        }
        let isWhole = isFollowed || head.end + 4 == line.start + UInt(headSize)
        return (head.fields, head.isPlain && isWhole && line.isPlain(targetSize: targetSize))
    }

    private struct Head {
        var fields = Fields()
        var isPlain = true
        /// Where what was seen last ends.
        var end: UInt
        let isFollowed: Bool

        init(end: UInt, isFollowed: Bool) {
            self.end = end
            self.isFollowed = isFollowed
        }

        mutating func append(
            _ name: UnsafePointer<CChar>?, _ nameSize: Int, _ value: UnsafePointer<CChar>?, _ valueSize: Int
        ) {
            guard let name, let value else {
                isPlain = false
                return
            }
            // White space behind a value is none of it (RFC 9112 section 5); libmicrohttpd 0.9 leaves it there.
            let size = isFollowed ? sizeWithoutBlanks(value, valueSize) : valueSize
            fields.append(text(name, nameSize), text(value, size))
            if !isFollowed && UInt(bitPattern: name) != end + 2 { isPlain = false }
            end = UInt(bitPattern: value) + UInt(valueSize)
        }
    }

    /// Interim responses for a client of `version`; HTTP/1.0 knows none (RFC 9110 section 15.2).
    func interimChannel(version: ProtocolVersion, base: PublicBase) -> InterimChannel {
        InterimChannel(output: version >= .http11 ? output : nil, base: base)
    }

    func queue(_ response: OutgoingResponse, status: Status) -> Bool {
        MHD_queue_response(handle, UInt32(status.rawValue), response.handle) == .YES
    }
}

private func sizeWithoutBlanks(_ start: UnsafePointer<CChar>, _ count: Int) -> Int {
    var count = count
    while count > 0, start[count - 1] == 0x20 || start[count - 1] == 9 { count -= 1 }
    return count
}

private func text(_ start: UnsafePointer<CChar>, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
}

/// The first line of a request, and where it lies in libmicrohttpd's buffer.
struct RequestStart {
    let method: String
    let version: String
    let start: UInt
    let end: UInt
    private let versionStart: UInt
    private let methodSize: Int

    init(_ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>) {
        self.method = String(cString: method)
        self.version = String(cString: version)
        start = UInt(bitPattern: method)
        methodSize = strlen(method)
        versionStart = UInt(bitPattern: version)
        end = versionStart + UInt(strlen(version))
    }

    /// Whether nothing but one space stands on either side of the target: no NUL has cut it or the method short.
    func isPlain(targetSize: Int) -> Bool {
        versionStart == start + UInt(methodSize) + 1 + UInt(targetSize) + 1
    }
}
