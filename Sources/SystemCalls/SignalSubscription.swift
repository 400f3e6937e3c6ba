import Glibc
import Synchronization

/// Passes signals of the process to a function, while the subscription exists. Signals must be blocked before other
/// threads are started, but a subscription can be created at any time.
package final class SignalSubscription: Sendable {
    private let number: Int

    /// Signals that the process ignores, as under nohup(1), stay ignored.
    ///
    /// - Parameter receive: is called on a thread of its own, once for each signal.
    package init(_ signals: [Int32], _ receive: @escaping @Sendable (Int32) -> Void) throws(Errno) {
        number = try SignalDispatcher.shared.add(signals, receive)
    }

    /// Ends the subscription. If it was the last subscription for a signal, the previous action is restored.
    package func cancel() { SignalDispatcher.shared.remove(number) }

    deinit { cancel() }
}

/// The descriptor to which the signal handler writes.
private let handlerOutput = Atomic<Int32>(-1)

/// The signal handler. It can run on any thread at any time, so it only calls write(2).
private let handleSignal: @convention(c) (Int32) -> Void = { signal in
    let error = errno
    var byte = UInt8(truncatingIfNeeded: signal)
    _ = write(handlerOutput.load(ordering: .relaxed), &byte, 1)
    errno = error
}

/// The signal handler of this process, and the thread that calls the subscribers.
private final class SignalDispatcher: Sendable {
    static let shared = SignalDispatcher()

    private struct Subscriber {
        let signals: [Int32]
        let receive: @Sendable (Int32) -> Void
    }

    private struct State {
        var isStarted = false
        var lastNumber = 0
        var subscribers: [Int: Subscriber] = [:]
        /// The actions of the signals before `handleSignal` replaced them.
        var previous: [Int32: sigaction] = [:]
    }

    private let state = Monitor(State())

    func add(_ signals: [Int32], _ receive: @escaping @Sendable (Int32) -> Void) throws(Errno) -> Int {
        try state.withLock { (state) throws(Errno) in
            if !state.isStarted { try start() }
            state.isStarted = true
            state.lastNumber += 1
            state.subscribers[state.lastNumber] = Subscriber(signals: signals, receive: receive)
            for signal in signals where state.previous[signal] == nil {
                var previous = sigaction()
                sigaction(signal, nil, &previous)
                if ProcessControl.isIgnored(previous) { continue }
                var action = sigaction()
                action.__sigaction_handler.sa_handler = handleSignal
                action.sa_flags = SA_RESTART
                guard sigaction(signal, &action, nil) == 0 else { continue }
                state.previous[signal] = previous
            }
            return state.lastNumber
        }
    }

    func remove(_ number: Int) {
        state.withLock { state in
            guard let removed = state.subscribers.removeValue(forKey: number) else { return }
            let remaining = Set(state.subscribers.values.flatMap(\.signals))
            for signal in removed.signals where !remaining.contains(signal) {
                guard var previous = state.previous.removeValue(forKey: signal) else { continue }
                sigaction(signal, &previous, nil)
            }
        }
    }

    private func start() throws(Errno) {
        var ends: [Int32] = [-1, -1]
        // Unlike pipe(2), socketpair(2) can set the close-on-exec flag from the start.
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw .current
        }
        // A handler must not wait if there are very many signals.
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        let input = ends[0]
        do throws(Errno) {
            _ = try WorkerThread(name: "signals") { [self] in dispatch(input) }
        } catch {
            close(ends[0])
            close(ends[1])
            throw error
        }
        handlerOutput.store(ends[1], ordering: .relaxed)
    }

    private func dispatch(_ input: Int32) {
        while true {
            var byte: UInt8 = 0
            guard read(input, &byte, 1) == 1 else { continue }
            let signal = Int32(byte)
            let receivers = state.withLock { state in
                state.subscribers.values.filter { $0.signals.contains(signal) }.map(\.receive)
            }
            for receive in receivers { receive(signal) }
        }
    }
}
