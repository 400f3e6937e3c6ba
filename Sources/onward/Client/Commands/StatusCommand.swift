import CommandLineInterface
import ResumableTransfer
import SystemCalls

/// `onward status`: lists interrupted and running transfers and their progress.
enum StatusCommand {
    static let command = ClientCommand(
        "status", "list interrupted and running transfers", usage: ["[--json]"],
        """
        Lists interrupted and running transfers and their progress. The progress of an upload
        is the number of acknowledged bytes; the server may have received more. Transfers that
        were started with --state are not listed.
        """,
        options: ClientSettings.statusOptions)

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        command.run(arguments, check: check) { _, settings, report, _ in list(settings, report) }
    }

    private static func check(_ settings: ClientSettings, _ operands: [CommandArgument]) throws(OptionError) {
        if let first = operands.first { throw OptionError("unexpected '\(first)': status accepts no operands") }
    }

    private static func list(_ settings: ClientSettings, _ report: TransferReport) -> ExitStatus {
        SentFilesLists.restoreStates()
        let references: [StateReference]
        do throws(CommandFailure) { references = try StateReference.all() } catch { return report.ended(error) }
        var result = ExitStatus.done
        var lines: [String] = []
        for reference in references {
            do throws(CommandFailure) {
                guard let saved = try reference.load() else { continue }
                let holder = reference.holder
                let entry = Entry(reference, saved, isActive: holder.isHeld, process: holder.process)
                lines.append(settings.isJSON ? entry.json.text : entry.text)
            } catch {
                report.warn(error.message)
                result = .worse(result, error.status)
            }
        }
        if lines.isEmpty && !settings.isJSON && result == .done { lines = ["There are no interrupted transfers."] }
        for line in lines { Console.output(line) }
        return result
    }

    /// The entry of one state in the output.
    struct Entry: Sendable {
        let name: FilePath
        let path: FilePath
        let identity: TransferIdentity
        let position: TransferPosition
        let savedAt: Int64
        let isActive: Bool
        let process: Int32?

        init(
            _ reference: StateReference, _ saved: SavedTransfer, isActive: Bool, process: Int32?
        ) {
            name = reference.shown
            path = reference.directory.path(of: reference.fileName)
            identity = saved.identity
            position = TransferPosition(
                kind: saved.identity.kind, moved: saved.sent ?? saved.resumeData.position,
                acknowledged: saved.resumeData.position,
                total: saved.resumeData.total)
            savedAt = saved.savedAt
            self.isActive = isActive
            self.process = process
        }

        var text: String {
            let activity = isActive ? "  (running" + (process.map { ", process \($0)" } ?? "") + ")" : ""
            return "\(name)  \(position.keptText)\(activity)\n    \(CommandState.subject(of: identity))"
        }

        var json: JSONLine {
            var line = JSONLine([])
            line.append("state", path: name)
            line.append("path", path: path)
            line.append("kind", .text(identity.kind.rawValue))
            line.append("file", path: identity.path)
            line.append("method", .text(identity.method))
            line.append("url", .text(TransferURL.shown(identity.url)))
            for (name, value) in position.members { line.append(name, value) }
            line.append("savedAt", savedAt)
            line.append("active", .truth(isActive))
            return line
        }
    }
}
