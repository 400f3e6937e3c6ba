import Glibc
import TransferServer

// Functions of the C library and of GnuTLS, in whose place libmicrohttpd finds these. They act in the whole process, so on
// other threads than libmicrohttpd's they change nothing. Correctness does not depend on them: without them a reset costs
// bytes that have to be sent again, and some malformed requests get libmicrohttpd's own answers.

/// libmicrohttpd gives up a connection as soon as poll(2) reports an error or hang-up, and with it every byte that has
/// arrived and was not read yet. On its connection threads those conditions are told as readiness instead: it then reads
/// until nothing is left and learns of the end from recv(2).
@_cdecl("poll")
public func interposedPoll(_ entries: UnsafeMutablePointer<pollfd>?, _ count: nfds_t, _ timeout: CInt) -> CInt {
    let result = systemPoll(entries, count, timeout)
    guard result > 0, let entries, ConnectionThread.isCurrent else { return result }
    let broken = Int16(POLLERR | POLLHUP)
    for index in 0..<Int(count) where entries[index].revents & broken != 0 {
        let wanted = entries[index].events & Int16(POLLIN | POLLOUT)
        // An entry that does not wait to read keeps the truth: no byte is at stake, and a sender has to learn of the end.
        if wanted & Int16(POLLIN) != 0 { entries[index].revents = (entries[index].revents & ~broken) | wanted }
    }
    return result
}

/// What libmicrohttpd receives in the clear is looked at before it sees it.
@_cdecl("recv")
public func interposedReceive(
    _ socket: CInt, _ buffer: UnsafeMutableRawPointer?, _ size: Int, _ flags: CInt
) -> Int {
    let count = systemReceive(socket, buffer, size, flags)
    guard count > 0, flags & CInt(MSG_PEEK) == 0 else { return count }
    let kept = ConnectionThread.received(
        UnsafeMutableRawBufferPointer(start: buffer, count: count), isDecrypted: false)
    if kept > 0 { return kept }
    // Nothing that means anything, and not the end.
    errno = EAGAIN
    return -1
}

/// The same for what it receives from a TLS session.
@_cdecl("gnutls_record_recv")
public func interposedRecordReceive(
    _ session: UnsafeMutableRawPointer?, _ buffer: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
    var total = 0
    while true {
        let count = systemRecordReceive(session, buffer.map { $0 + total }, size - total)
        guard count > 0, let buffer else { return total > 0 ? total : count }
        let kept = ConnectionThread.received(
            UnsafeMutableRawBufferPointer(start: buffer + total, count: count), isDecrypted: true)
        total += kept
        // What the session still holds poll(2) does not know of. libmicrohttpd asks for it only where it got all that it
        // has room for.
        if kept == count || total == size || systemRecordPending(session) == 0 { break }
    }
    return total > 0 ? total : tryAgain
}

/// GNUTLS_E_AGAIN
private let tryAgain = -28

private typealias PollFunction = @convention(c) (UnsafeMutablePointer<pollfd>?, nfds_t, CInt) -> CInt
private typealias ReceiveFunction = @convention(c) (CInt, UnsafeMutableRawPointer?, Int, CInt) -> Int
private typealias RecordReceiveFunction =
    @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int) -> Int
private typealias RecordPendingFunction = @convention(c) (UnsafeMutableRawPointer?) -> Int

// Each found once.
private let systemPoll = next("poll", as: PollFunction.self)
private let systemReceive = next("recv", as: ReceiveFunction.self)
private let systemRecordReceive = next("gnutls_record_recv", as: RecordReceiveFunction.self)
private let systemRecordPending = next("gnutls_record_check_pending", as: RecordPendingFunction.self)

/// The function of this name in the library that comes next.
private func next<Function>(_ name: String, as type: Function.Type) -> Function {
    let next = UnsafeMutableRawPointer(bitPattern: -1)  // RTLD_NEXT
    guard let symbol = dlsym(next, name) else { abort() }
    return unsafeBitCast(symbol, to: type)
}
