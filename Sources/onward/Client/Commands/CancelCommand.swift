import CommandLineInterface
import ResumableTransfer
import SystemCalls

/// `onward cancel`: deletes the state of a transfer, and the upload on the server or the local partial file.
enum CancelCommand {
    static let command = ClientCommand(
        "cancel", "delete a transfer and its upload or partial file", usage: ["[OPTIONS] STATE"],
        """
        Deletes the state of an interrupted transfer. For an upload it also deletes the upload
        on the server, for a download the partial file. STATE is a name that 'onward status'
        prints, or the path of a state file.
        """,
        options: ClientSettings.cancelOptions, operands: ClientManual.states)

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        command.run(arguments, check: check) { name, settings, report, _ in await cancel(name, settings, report) }
    }

    private static func check(_ settings: ClientSettings, _ operands: [CommandArgument]) throws(OptionError) -> FilePath
    {
        guard let first = operands.first else {
            throw OptionError("STATE is missing; 'onward status' lists all states except those of --state")
        }
        guard operands.count == 1 else { throw OptionError("unexpected '\(operands[1])': cancel accepts one STATE") }
        return FilePath(first.bytes)
    }

    private static func cancel(
        _ name: FilePath, _ settings: ClientSettings, _ report: TransferReport
    ) async -> ExitStatus {
        var isKept = false
        SentFilesLists.restoreStates()
        do throws(CommandFailure) {
            let state = try StateReference.find(name).claim()
            defer { withExtendedLifetime(state) {} }
            // Read again, because the file may have changed before the lock was acquired.
            guard let saved = try state.load() else {
                throw CommandFailure(.noSource, "no-such-state", "the state '\(name)' no longer exists")
            }
            isKept = true
            let usesOtherCredentials = settings.hasOtherCredentials(than: saved.options)
            let settings = settings.completed(by: saved.options)
            let isDeleted = try await discard(
                saved.resumeData, settings.request(saved.resumeData), try settings.client())
            guard isDeleted || !usesOtherCredentials else {
                // For requests of other users, a server responds as for an upload that does not exist.
                throw CommandFailure(
                    .notAllowed, "unauthorized",
                    "The server has no such upload for these credentials. The upload was started with other credentials:"
                        + " \(saved.options.credentials). To delete only the local state, remove \(state.path).")
            }
            await state.remove()
            SentFilesLists().cancel(saved.identity)
            let what =
                saved.identity.kind == .get
                ? "the partial file is deleted"
                : isDeleted
                    ? "the upload is deleted on the server"
                    : "the server has no such upload for these credentials"
            report.note("Canceled \(CommandState.subject(of: saved.identity)); \(what).")
            return .done
        } catch {
            let hint =
                error.status == .notAllowed
                ? " Give the credentials with which the upload was started, with --token-file or --header." : ""
            return report.ended(error, advice: isKept ? "The state was kept." + hint : nil)
        }
    }

    private static func discard(
        _ data: ResumeData, _ request: TransferRequest, _ client: TransferClient
    ) async throws(CommandFailure) -> Bool {
        let result: Result<Bool, TransferError>
        do throws(TransferError) {
            result = .success(try await client.discard(data, request: request))
        } catch {
            result = .failure(error)
        }
        await client.shutDown()
        do throws(TransferError) { return try result.get() } catch { throw CommandFailure(error) }
    }
}
