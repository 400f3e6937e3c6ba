import CLinux
import Glibc

/// The descriptors for which one thread waits (epoll(7)). Other threads can end the wait.
package final class EventQueue: Sendable {
    /// The operations for which a descriptor is ready.
    package struct Readiness: OptionSet, Sendable, Hashable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        /// A read would return immediately: with bytes, the end of the input, or an error.
        package static let input = Readiness(rawValue: 1)
        /// A write would not wait.
        package static let output = Readiness(rawValue: 2)
        /// The connection was closed or has failed.
        package static let failure = Readiness(rawValue: 4)
    }

    private static let maxEvents = 64

    private let epoll: FileDescriptor
    /// An eventfd(2) for ``wake()``.
    private let signal: FileDescriptor

    package init() throws(Errno) {
        epoll = FileDescriptor(owning: try retryingOnInterrupt { epoll_create1(Int32(EPOLL_CLOEXEC)) })
        signal = FileDescriptor(
            owning: try retryingOnInterrupt { eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK)) })
        // Each write is an event of its own, so nothing has to be read.
        try control(EPOLL_CTL_ADD, signal.rawValue, EPOLLIN.rawValue | EPOLLET.rawValue)
    }

    /// Ends the call of ``wait(_:_:)`` that is running, or else the next call.
    package func wake() { eventfd_write(signal.rawValue, 1) }

    /// Adds a descriptor, or replaces the events for which ``wait(_:_:)`` reports it. Failures are always reported.
    package func watch(_ descriptor: Int32, for readiness: Readiness) throws(Errno) {
        let events =
            (readiness.contains(.input) ? EPOLLIN.rawValue : 0) | (readiness.contains(.output) ? EPOLLOUT.rawValue : 0)
        do throws(Errno) {
            try control(EPOLL_CTL_MOD, descriptor, events)
        } catch {
            guard error == .noSuchFile else { throw error }
            try control(EPOLL_CTL_ADD, descriptor, events)
        }
    }

    /// Removes a descriptor. Call this before the descriptor is closed.
    package func remove(_ descriptor: Int32) { try? control(EPOLL_CTL_DEL, descriptor, 0) }

    private func control(_ operation: Int32, _ descriptor: Int32, _ events: UInt32) throws(Errno) {
        var event = epoll_event()
        event.events = events
        event.data.fd = descriptor
        _ = try retryingOnInterrupt { epoll_ctl(epoll.rawValue, operation, descriptor, &event) }
    }

    /// Waits until a descriptor is ready, until ``wake()`` is called, or until `milliseconds` have passed, and calls
    /// `body` with each descriptor that is ready.
    package func wait(_ milliseconds: Int32, _ body: (Int32, Readiness) -> Void) {
        withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: Self.maxEvents) { events in
            let count = epoll_wait(epoll.rawValue, events.baseAddress, Int32(events.count), milliseconds)
            guard count > 0 else { return }
            for event in events[..<Int(count)] where event.data.fd != signal.rawValue {
                var readiness: Readiness = []
                if event.events & EPOLLIN.rawValue != 0 { readiness.insert(.input) }
                if event.events & EPOLLOUT.rawValue != 0 { readiness.insert(.output) }
                if event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 { readiness.insert(.failure) }
                body(event.data.fd, readiness)
            }
        }
    }
}
