import ConformanceKit
import Glibc
import SystemCalls
import TestSupport

/// One connection to a server, byte by byte. Every operation has a time limit. Used by one thread at a time.
final class RawConnection {
    /// What `Host` says by default.
    let authority: String
    private let descriptor: Int32
    private var isClosed = false
    /// Bytes that have arrived and are no message yet.
    var buffer: [UInt8] = []
    /// Interim responses since the last final one.
    var interim: [InterimResponse] = []
    /// Everything that ever arrived.
    private(set) var received: [UInt8] = []

    /// Connects to a port of the loopback interface.
    /// - Parameters:
    ///   - receiveBuffer: SO_RCVBUF, for a client that can be made to read slowly.
    ///   - source: the last number of the address of 127.0.0.0/8 from which it connects.
    init(port: UInt16, authority: String? = nil, receiveBuffer: Int32? = nil, source: UInt8 = 1) throws {
        self.authority = authority ?? "127.0.0.1:\(port)"
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Errno.current }
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        func use(_ host: UInt8, _ port: UInt16, _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = (UInt32(0x7F00_0000) | UInt32(host)).bigEndian
            return withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        if source != 1 { guard use(source, 0, Glibc.bind) == 0 else { throw Errno.current } }
        guard use(1, port, Glibc.connect) == 0 else { throw Errno.current }
        // Pieces that are sent apart have to arrive apart.
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Connects to a socket in the file system.
    init(unixPath path: String, authority: String = "localhost") throws {
        self.authority = authority
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Errno.current }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw Errno.current }
    }

    deinit { close() }

    // MARK: Sending

    /// Sends all of `bytes`.
    /// - Throws: `WireFailure.reset` where the server has closed, `.timedOut` where it does not read.
    func send(_ bytes: some Collection<UInt8>, within limit: Duration = .seconds(60)) throws {
        let deadline = Deadline(in: limit)
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(
                    descriptor, buffer.baseAddress?.advanced(by: sent), bytes.count - sent,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if count > 0 {
                sent += count
            } else if errno == EAGAIN || errno == EINTR {
                guard awaitEvents(POLLOUT, until: deadline) else {
                    throw WireFailure.timedOut("sent \(sent) of \(bytes.count) bytes")
                }
            } else if errno == EPIPE || errno == ECONNRESET {
                throw WireFailure.reset
            } else {
                throw Errno.current
            }
        }
    }

    func send(_ text: String) throws { try send(text.utf8) }

    /// Sends the request's head, and its content where it has one.
    func send(_ request: Request, within limit: Duration = .seconds(60)) throws {
        SentSecrets.record(request, to: authority)
        try send(request.serialized(authority: authority), within: limit)
    }

    func sendChunk(_ bytes: [UInt8]) throws { try send(Request.chunk(bytes)) }

    func sendLastChunk() throws { try send(Request.lastChunk) }

    /// Sends as much of `bytes` as the server takes, and says how much that was: a server that refuses need not read
    /// everything, and a client that is still writing must be able to find out why.
    func sendWhatGoes(_ bytes: some Collection<UInt8>, within limit: Duration = .seconds(10)) -> Int {
        var sent = 0
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(64 << 10)
            guard (try? send(piece, within: limit)) != nil else { break }
            sent += piece.count
            rest = rest.dropFirst(piece.count)
        }
        return sent
    }

    /// Ends our side; the server's stays open.
    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Takes nothing in any more; what arrives is thrown away by our kernel.
    func stopReceiving() { shutdown(descriptor, Int32(SHUT_RD)) }

    /// Closes the connection with an orderly end, unless unread bytes make the kernel reset it.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        Glibc.close(descriptor)
    }

    /// Closes the connection by a reset, as a crashed client's kernel would.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    /// Waits until the server's kernel has acknowledged everything that was sent.
    ///
    /// The server itself may not have read it yet.
    func awaitAcknowledgment(within limit: Duration = .seconds(60)) throws {
        let done: Bool? = pollUntil(within: limit) {
            var unsent: Int32 = 0
            return ioctl(descriptor, UInt(TIOCOUTQ), &unsent) == 0 && unsent == 0 ? true : nil
        }
        if done == nil { throw WireFailure.timedOut("unacknowledged bytes") }
    }

    // MARK: Receiving

    /// How a connection ended.
    enum Closing: Sendable, Equatable {
        case end
        case reset
    }

    /// Reads what comes next into `buffer`.
    /// - Returns: how the connection ended, if it did; `nil` when bytes came.
    func receiveMore(until deadline: Deadline) throws -> Closing? {
        guard awaitEvents(POLLIN, until: deadline) else {
            throw WireFailure.timedOut(
                "received \(String(decoding: buffer.suffix(2000), as: UTF8.self).debugDescription)")
        }
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(descriptor, &piece, piece.count, 0)
            if count < 0 && errno == EINTR { continue }
            if count == 0 { return .end }
            if count < 0 { return .reset }
            buffer += piece[..<count]
            received += piece[..<count]
            return nil
        }
    }

    /// Reads until the server closes the connection.
    /// - Returns: how it did, and the bytes that no response accounts for.
    func awaitClosing(within limit: Duration = .seconds(60)) throws -> (closing: Closing, leftover: String) {
        let deadline = Deadline(in: limit)
        while true {
            if let closing = try receiveMore(until: deadline) {
                return (closing, String(decoding: buffer, as: UTF8.self))
            }
        }
    }

    /// Whether nothing arrives for so long. Use it only to show that something does *not* happen.
    func staysSilent(for duration: Duration) -> Bool {
        buffer.isEmpty && !awaitEvents(POLLIN, until: Deadline(in: duration))
    }

    /// Whether the server has closed the connection, or its side of it. Reads nothing.
    var isClosedByPeer: Bool {
        // POLLRDHUP, which Glibc does not show to Swift.
        var entry = pollfd(fd: descriptor, events: 0x2000, revents: 0)
        return poll(&entry, 1, 0) == 1
    }

    private func awaitEvents(_ events: Int32, until deadline: Deadline) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        while true {
            let result = poll(&entry, 1, deadline.milliseconds)
            if result < 0 && errno == EINTR { continue }
            return result == 1
        }
    }
}
