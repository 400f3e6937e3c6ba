import CommandLineInterface
import ResumableTransfer
import SystemCalls

/// `onward resume`: resumes interrupted transfers.
enum ResumeCommand {
    static let command = ClientCommand(
        "resume", "resume interrupted transfers", usage: ["[OPTIONS] [STATE]"],
        """
        Resumes the interrupted transfer STATE, or without STATE all that 'onward status' lists.
        STATE is a name that 'onward status' prints, or the path of a state file.

        The paths of --token-file, --cacert, --cert and --key are saved. Fields of --header that
        may be secret are not saved: give them again. A password in the URL is not saved: give it
        as --header 'Authorization: Basic ...'.

        Sizes have units K M G T (powers of 1000) and KiB MiB GiB TiB (of 1024), durations
        s m h d.
        """,
        options: ClientSettings.resumeOptions, operands: ClientManual.states)

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        command.run(arguments, check: check) { name, settings, report, signals in
            SentFilesLists.restoreStates()
            let clients = CommandClients()
            let status =
                if let name {
                    await resume(one: name, settings, report, signals, clients)
                } else {
                    await resumeAll(settings, report, signals, clients)
                }
            await clients.shutDown()
            return status
        }
    }

    private static func check(_ settings: ClientSettings, _ operands: [CommandArgument]) throws(OptionError)
        -> FilePath?
    {
        guard operands.count <= 1 else {
            throw OptionError("unexpected '\(operands[1])': resume accepts one STATE, or none for all")
        }
        return operands.first.map { FilePath($0.bytes) }
    }

    private static func resume(
        one name: FilePath, _ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch,
        _ clients: CommandClients
    ) async -> ExitStatus {
        do throws(CommandFailure) {
            return try await resume(try StateReference.find(name), settings, report, signals, clients)
        } catch {
            return report.ended(error)
        }
    }

    private static func resumeAll(
        _ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch, _ clients: CommandClients
    ) async -> ExitStatus {
        let all: [StateReference]
        do throws(CommandFailure) { all = try StateReference.all() } catch { return report.ended(error) }
        if all.isEmpty { report.note("There are no interrupted transfers.") }
        var result = ExitStatus.done
        for reference in all {
            let report = all.count > 1 ? TransferReport(report, in: nil) : report
            if signals.isStopRequested {
                report.note("Stopped. Run the same command again to resume the remaining transfers.")
                result = .worse(result, .tryAgain)
                break
            }
            if reference.holder.isHeld {
                report.note("\(reference.shown) is already running.")
                continue
            }
            let status: ExitStatus
            do throws(CommandFailure) {
                status = try await resume(reference, settings, report, signals, clients)
            } catch {
                status = report.ended(error)
            }
            result = .worse(result, status)
        }
        return result
    }

    private static func resume(
        _ reference: StateReference, _ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch,
        _ clients: CommandClients
    ) async throws(CommandFailure) -> ExitStatus {
        guard let saved = try reference.load() else {
            throw CommandFailure(.noSource, "no-such-state", "the state '\(reference.shown)' no longer exists")
        }
        report.note("Resuming \(CommandState.subject(of: saved.identity))")
        let job = TransferJob(saved, chosenState: reference.chosen, settings)
        let finished = SentFilesLists()
        signals.endImmediately()
        let status = await job.run(report, signals, clients, finished)
        if status == .done, job.identity.kind == .put { finished.removeCompleteLists([job.identity]) }
        return status
    }
}
