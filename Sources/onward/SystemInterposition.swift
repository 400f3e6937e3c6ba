import Glibc
import TransferServer

/// libmicrohttpd gives up a connection as soon as poll(2) reports an error or hang-up, and with it every byte that has
/// arrived and was not read yet. On its connection threads those conditions are told as readiness instead: it then reads
/// until nothing is left and learns of the end from recv(2).
///
/// This function takes the place of the C library's in the whole process, so everywhere else it changes nothing. Correctness
/// does not depend on it: without it a reset merely costs bytes that have to be sent again.
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

private typealias PollFunction = @convention(c) (UnsafeMutablePointer<pollfd>?, nfds_t, CInt) -> CInt

/// The C library's own function, found once.
private let systemPoll: PollFunction = {
    let next = UnsafeMutableRawPointer(bitPattern: -1)  // RTLD_NEXT
    guard let symbol = dlsym(next, "poll") else { abort() }
    return unsafeBitCast(symbol, to: PollFunction.self)
}()
