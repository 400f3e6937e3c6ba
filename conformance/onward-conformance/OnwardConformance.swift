import CommandLineInterface
import ConformanceKit
import Foundation
import SystemCalls

/// `onward-conformance`: verifies servers and clients of Resumable Uploads for HTTP.
@main
enum OnwardConformance {
    static func main() {
        ProcessControl.ignoreBrokenPipes()
        do throws(Errno) { try handleEndSignals() } catch {
            Output.printError("a thread cannot be started: \(error)")
            exit(2)
        }
        let status = run(Array(CommandLine.arguments.dropFirst()))
        ending.withLock { _ in exit(Output.status(status)) }
    }

    /// While this lock is held, the process is ending.
    private static let ending = Monitor(())

    /// Starts a thread that waits for SIGINT or SIGTERM. After a signal, this thread ends the programs that this
    /// process has started, removes the temporary directories, and ends the process. Call this method before any other
    /// thread is started.
    private static func handleEndSignals() throws(Errno) {
        let signals = ProcessControl.blockSignals(ProcessControl.endSignals)
        guard !signals.isEmpty else { return }
        _ = try WorkerThread(name: "signals") {
            let signal = ProcessControl.awaitSignal(of: signals)
            Output.stop()
            // The status is the one that a shell shows for the signal.
            ending.withLock { _ in ScratchDirectory.endProcess(status: 128 + signal) }
        }
    }

    private static func run(_ arguments: [String]) -> Int32 {
        switch arguments.first {
        case "server":
            return ServerCommand.run(Array(arguments.dropFirst()))
        case "client":
            return ClientCommand.run(Array(arguments.dropFirst()))
        case "proxy":
            return ProxyCommand.run(Array(arguments.dropFirst()))
        case "matrix":
            return MatrixCommand.run(Array(arguments.dropFirst()))
        case "list":
            if arguments.contains("--help") {
                Output.write(HelpText(list, of: manual.name).text + "\n")
                return 0
            }
            guard arguments.count == 1 else { return usageError("unexpected '\(arguments[1])'", of: list.name) }
            Output.write(CaseListing().text)
            return 0
        case "help"? where arguments.count > 1 && !["--help", "-h"].contains(arguments[1]):
            if ["help", "manual", "version"].contains(arguments[1]) { return run([arguments[1], "--help"]) }
            guard let page = manual.commands.first(where: { $0.name == arguments[1] }) else {
                return usageError("there is no command '\(arguments[1])'")
            }
            Output.write(HelpText(page, of: manual.name).text + "\n")
            return 0
        case "help"?, "--help"?, "-h"?:
            Output.write(HelpText(overview: manual).text + "\n")
            return 0
        case "version"? where arguments.dropFirst().first == "--help":
            Output.write("usage: \(manual.name) version\n\nPrints the name of the program and its version.\n")
            return 0
        case "version"?, "--version"?:
            guard arguments.count == 1 else { return usageError("version: unexpected '\(arguments[1])'") }
            Output.write("\(manual.name) \(manual.version)\n")
            return 0
        case "manual"?:
            do throws(OptionError) {
                Output.write(try manual.manual(Array(arguments.dropFirst())))
                return 0
            } catch { return usageError(error.message, of: "manual") }
        case let word?:
            return usageError("there is no command '\(word)'")
        case nil:
            return usageError("a command is missing")
        }
    }

    /// Runs a command with options, or prints its help.
    /// - Returns: the exit status, which is 2 if the options are invalid or the command fails.
    static func perform<Options>(
        _ page: ManualPage, _ arguments: [String], parse: ([String]) throws(OptionError) -> Options,
        verify: (Options) throws -> Int32
    ) -> Int32 {
        if arguments.contains("--help") || arguments.contains("-h") {
            Output.write(HelpText(page, of: manual.name).text + "\n")
            return 0
        }
        let options: Options
        do throws(OptionError) {
            options = try parse(arguments)
        } catch {
            return usageError(error.message, of: page.name)
        }
        do {
            return try verify(options)
        } catch {
            Output.printError("\(error)", of: page.name)
            return 2
        }
    }

    /// Returns a report in the width and with the colors of standard output.
    static func terminal() -> TerminalReport {
        TerminalReport(
            hasColors: Terminal.isTerminal(1) && ProcessInfo.processInfo.environment["NO_COLOR"] == nil,
            width: Terminal.columns(of: 1) ?? 120)
    }

    /// - Parameter command: the command with the error; `nil` if there is none.
    static func usageError(_ reason: String, of command: String? = nil) -> Int32 {
        let help = (command.map { $0 + " " } ?? "") + "--help"
        Output.printError("\(reason)\nSee '\(manual.name) \(help)'.", of: command)
        return 2
    }
}

/// A file for a report. A command opens it before the run, so that a file that cannot be written is reported at once.
struct ReportFile {
    private let path: String
    private let file: FileDescriptor

    /// Opens the file, and creates it if it is missing. Its content does not change.
    init(_ path: String) throws(FileFailure) {
        self.path = path
        do throws(Errno) {
            file = try FileDescriptor.open(path, [.writeOnly, .create], mode: 0o666)
        } catch {
            throw FileFailure("\(path) cannot be written: \(error)")
        }
    }

    /// Replaces the content of the file.
    func write(_ document: Data) throws(FileFailure) {
        do throws(Errno) {
            // Pipes and devices have no size.
            if try file.status().isRegular { try file.truncate(to: 0) }
            try LogOutput(descriptor: file.rawValue).writeOrThrow(String(decoding: document, as: UTF8.self))
        } catch {
            throw FileFailure("\(path) cannot be written: \(error)")
        }
    }
}

/// A file that cannot be read or written.
struct FileFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
