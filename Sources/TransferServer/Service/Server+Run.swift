import SystemCalls

extension Server {
    /// A signal that stops ``Server/run(stoppingOn:)``.
    public struct Signal: RawRepresentable, Sendable, Hashable {
        /// The number of the signal.
        public let rawValue: Int32

        /// Creates a signal from its number, such as `SIGUSR1`.
        public init(rawValue: Int32) { self.rawValue = rawValue }

        /// The signal with which a service manager requests the end of the process.
        public static let sigterm = Signal(rawValue: 15)
        /// The signal that Ctrl-C in a terminal sends.
        public static let sigint = Signal(rawValue: 2)
        /// The signal that is sent when the terminal is closed.
        public static let sighup = Signal(rawValue: 1)
    }

    /// Starts the server, and stops it when one of `signals` arrives or the task is canceled. Returns when all
    /// connections are closed.
    ///
    /// While the server runs, the signals do not end the process. A second signal closes all connections without
    /// waiting for responses in progress. Signals that the process has ignored since its start have no effect: nohup(1)
    /// ignores SIGHUP, and a shell script ignores SIGINT for a command that ends with `&`.
    /// - Parameter signals: the signals that stop the server; empty: only a cancellation stops it.
    /// - Throws: `StartError` if the server could not start.
    public func run(stoppingOn signals: [Signal] = [.sigterm, .sigint]) async throws(StartError) {
        ProcessControl.ignoreBrokenPipes()
        let request = StopRequest()
        let subscription: SignalSubscription
        do throws(Errno) {
            subscription = try SignalSubscription(signals.map(\.rawValue)) { [self] _ in
                if request.isRepeated() { stopNow() }
            }
        } catch {
            throw .cannotStartThread("signals", error)
        }
        defer { subscription.cancel() }
        try await start()
        await request.wait()
        await stop()
    }
}

/// The first request to stop, for which one task waits.
private final class StopRequest: Sendable {
    private struct State {
        var isRequested = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Monitor(State())

    /// Requests the stop. Returns whether a stop was requested before.
    func isRepeated() -> Bool {
        let (isRepeated, waiting) = state.withLock { state in
            defer { (state.isRequested, state.waiting) = (true, nil) }
            return (state.isRequested, state.waiting)
        }
        waiting?.resume()
        return isRepeated
    }

    /// Waits for a request, or until the task is canceled.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isRequested = state.withLock { state in
                    if !state.isRequested { state.waiting = continuation }
                    return state.isRequested
                }
                if isRequested { continuation.resume() }
            }
        } onCancel: {
            _ = isRepeated()
        }
    }
}
