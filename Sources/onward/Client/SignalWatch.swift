import Glibc
import SystemCalls

/// Handles the signals that request a client command to end, and the signal of a changed window size.
final class SignalWatch: Sendable {
    private struct State {
        var isStopRequested = false
        var endStatus = ExitStatus.tryAgain
        /// Stops the transfers that are running.
        var stops: [Int: @Sendable () -> Void] = [:]
        var transfers = 0
        /// Whether a signal ends the process immediately while no transfer is running.
        var endsImmediately = true
        var resized: (@Sendable () -> Void)?
    }

    private let state = Monitor(State())

    /// Create this object before any other thread is started, so that the signals are blocked in all other threads.
    init() throws(Errno) {
        ProcessControl.ignoreBrokenPipes()
        let signals = ProcessControl.blockSignals([SIGINT, SIGTERM, SIGHUP, SIGWINCH])
        let state = state
        _ = try WorkerThread(name: "signals") {
            while true {
                let signal = ProcessControl.awaitSignal(of: signals)
                if signal == SIGWINCH {
                    state.withLock { $0.resized }?()
                } else {
                    SignalWatch.handle(signal, state)
                }
            }
        }
    }

    private static func handle(_ signal: Int32, _ state: Monitor<State>) {
        let (stops, isRepeated, endsNow, endStatus) = state.withLock { state in
            defer { state.isStopRequested = true }
            let endsNow = state.stops.isEmpty && state.endsImmediately
            return (state.stops, state.isStopRequested, endsNow, state.endStatus.rawValue)
        }
        if endsNow { ProcessControl.endNow(endStatus) }
        if !isRepeated { return stops.values.forEach { $0() } }
        // Any other repeated signal is ignored: timeout(1) sends its signal twice, to the process and to the process
        // group.
        if signal == SIGINT { ProcessControl.endNow(endStatus) }
    }

    var isStopRequested: Bool { state.withLock { $0.isStopRequested } }

    /// From now on, a signal that requests a stop ends the process immediately if no transfer is running then. A new
    /// object handles signals in this manner, too. Call this only while no state of another transfer is being saved or
    /// removed.
    /// - Parameter status: the exit status in that case.
    func endImmediately(with status: ExitStatus = .tryAgain) {
        state.withLock { state in
            state.endsImmediately = true
            state.endStatus = status
        }
    }

    /// Runs a transfer. Until `body` has returned, the first signal that requests a stop calls `stop`, and a second
    /// SIGINT ends the process immediately. After `body` has returned, a signal only sets ``isStopRequested`` until
    /// ``endImmediately(with:)`` is called, so that the command can save or remove the state of the transfer that has
    /// ended. Several transfers can run at the same time.
    func stopping<Result>(by stop: @escaping @Sendable () -> Void, while body: () async -> Result) async -> Result {
        let (number, isLate) = state.withLock { state in
            state.transfers += 1
            state.stops[state.transfers] = stop
            state.endsImmediately = false
            return (state.transfers, state.isStopRequested)
        }
        if isLate { stop() }
        defer { state.withLock { $0.stops[number] = nil } }
        return await body()
    }

    /// Calls `resized` whenever the window has changed.
    func onResize(_ resized: @escaping @Sendable () -> Void) { state.withLock { $0.resized = resized } }
}
