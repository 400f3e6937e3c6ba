import CommandLineInterface
import Glibc
import SystemCalls

/// The common part of the client commands: help, options, operands, and waiting for the end.
struct ClientCommand: Sendable {
    let page: ManualPage
    let options: [CommandOption<ClientSettings>]

    private var name: String { page.name }

    /// - Parameters:
    ///   - usage: the forms of the command line after the command's name.
    ///   - sections: sections that only the manual page has.
    ///   - common: the sections after `sections`, which all commands that transfer files share.
    init(
        _ name: String, _ summary: String, usage: [String], _ description: String,
        options: [CommandOption<ClientSettings>], operands: Completion = .nothing, sections: [ManualSection] = [],
        common: [ManualSection] = [ClientManual.exitStatus, ClientManual.files]
    ) {
        self.options = options
        page = ManualPage(
            name, summary, usage: usage.map { "\(name) \($0)" }, description, options: options.map(\.manual),
            operands: operands, sections: sections + common)
    }

    /// Parses the command line and runs the command.
    /// - Parameters:
    ///   - check: validates options and operands and returns the work to do.
    ///   - work: does the work.
    func run<Plan: Sendable>(
        _ arguments: [CommandArgument], check: (ClientSettings, [CommandArgument]) throws(OptionError) -> Plan,
        work: @escaping @Sendable (Plan, ClientSettings, TransferReport, SignalWatch) async -> ExitStatus
    ) -> ExitStatus {
        let parser = OptionParser(options: options)
        if arguments.contains("--help") || arguments.contains("-h") {
            Console.output(HelpText(page, of: "onward").text)
            return .done
        }
        var settings = ClientSettings()
        let plan: Plan
        do throws(OptionError) {
            let operands = try parser.operands(of: arguments, into: &settings)
            settings = try settings.checked()
            plan = try check(settings, operands)
        } catch {
            // `--json` has an effect even if it follows the wrong argument.
            settings.isJSON = arguments.contains("--json")
            let report = TransferReport(command: name, settings: settings)
            let status = report.ended(CommandFailure(error), advice: "See 'onward \(name) --help'.")
            report.finish(within: 5_000_000_000)
            return status
        }
        let final = settings
        return wait(final) { report, signals in await work(plan, final, report, signals) }
    }

    private func wait(
        _ settings: ClientSettings, _ work: @escaping @Sendable (TransferReport, SignalWatch) async -> ExitStatus
    ) -> ExitStatus {
        let report = TransferReport(command: name, settings: settings)
        let signals: SignalWatch
        do throws(Errno) {
            signals = try SignalWatch()
        } catch {
            let status = report.ended(
                CommandFailure(.internalFailure, "internal-failure", "no thread can be started: \(error)"))
            report.finish(within: 5_000_000_000)
            return status
        }
        let end = Monitor<ExitStatus?>(nil)
        Task {
            let status = await work(report, signals)
            end.withLock { $0 = status }
            end.notifyAll()
        }
        let status = end.waitForever { $0 }
        // While the command waits until its output is read, a signal ends the process with this exit status.
        signals.endImmediately(with: status)
        report.finish(within: signals.isStopRequested ? 1_000_000_000 : nil)
        return status
    }
}

/// The common sections of the manual pages of client commands.
enum ClientManual {
    static let exitStatus = ManualSection(
        "Exit status",
        [
            .terms([
                ("0", "done"),
                ("64", "wrong usage"),
                ("65", "the source has changed since its upload began"),
                (
                    "66",
                    "the source does not exist or cannot be opened, or the STATE of\nresume or cancel does not exist"
                ),
                (
                    "69",
                    "the server refused the request permanently or lost acknowledged\nbytes, a TLS connection cannot be made (for example because of\nan untrusted certificate), or the host does not exist"
                ),
                ("70", "internal error"),
                ("74", "local I/O error"),
                (
                    "75",
                    "a signal or a temporary failure ended the command, or the\ntransfer is already running: run the same command again later"
                ),
                ("77", "the server or a proxy does not allow the transfer"),
            ])
        ])

    static let files = ManualSection(
        "Files",
        [
            .terms([
                (
                    "$XDG_STATE_HOME/onward",
                    """
                    A state file for each interrupted transfer, readable by its owner only and removed when the
                    transfer is complete. It contains no credentials. If the variable is not set, the directory is
                    ~/.local/state/onward.
                    """
                )
            ])
        ])

    /// The names that `onward status` shows.
    static let states = Completion.lines(
        #"onward status --json 2>/dev/null | sed -n 's/^{"state":"\([^"\\]*\)".*/\1/p'"#)
}

/// Handles the signals that request a client command to end, and the signal of a changed window size.
final class SignalWatch: Sendable {
    private struct State {
        var isStopRequested = false
        var endStatus = ExitStatus.tryAgain
        /// Stops the transfers that are running.
        var stops: [Int: @Sendable () -> Void] = [:]
        var transfers = 0
        /// Whether a signal ends the process immediately while no transfer is running.
        var shouldEndImmediately = true
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
            let endsNow = state.stops.isEmpty && state.shouldEndImmediately
            return (state.stops, state.isStopRequested, endsNow, state.endStatus.rawValue)
        }
        if endsNow { ProcessControl.endNow(endStatus) }
        if !isRepeated { return stops.values.forEach { $0() } }
        // Any other repeated signal is ignored: timeout(1) sends its signal twice, to the process and to the process
        // group.
        if signal == SIGINT { ProcessControl.endNow(endStatus) }
    }

    var isStopRequested: Bool { state.withLock { $0.isStopRequested } }

    /// From now on, a signal that requests a stop while no transfer is running ends the process immediately. A new
    /// object handles signals in the same way until the first call of ``stopping(by:while:)``. Call this only while no
    /// state of another transfer is being saved or removed.
    /// - Parameter status: the exit status in that case.
    func endImmediately(with status: ExitStatus = .tryAgain) {
        state.withLock { state in
            state.shouldEndImmediately = true
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
            state.shouldEndImmediately = false
            return (state.transfers, state.isStopRequested)
        }
        if isLate { stop() }
        defer { state.withLock { $0.stops[number] = nil } }
        return await body()
    }

    /// Calls `resized` whenever the window has changed.
    func onResize(_ resized: @escaping @Sendable () -> Void) { state.withLock { $0.resized = resized } }
}
