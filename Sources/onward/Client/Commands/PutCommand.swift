import CommandLineInterface
import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// `onward put`: uploads files.
enum PutCommand {
    private struct Plan: Sendable {
        /// The absolute paths of the files.
        var paths: [FilePath]
        var url: TransferURL
    }

    static let command = ClientCommand(
        "put", "upload files; a URL that ends in / is a collection",
        usage: ["[OPTIONS] FILE... URL", "-r [OPTIONS] DIR URL/"],
        """
        Uploads files. If URL ends in /, it is a collection (a folder of the server): the files are
        sent to it with POST, and the server chooses their URLs. Otherwise a single file is sent to
        URL with PUT. After an interruption run the same command again to resume. If the size,
        modification time or inode of a file has changed in the meantime, for example by 'touch',
        --restart is needed. Several small files are sent at the same time if the server supports
        resumable uploads, except with --limit-rate or --verbose.

        With -r DIR URL/ each file below DIR is sent with PUT to the same path below URL. Files
        that exist there with the same content are skipped, and symbolic links are not followed.

        Sizes have units K M G T (powers of 1000) and KiB MiB GiB TiB (of 1024), durations
        s m h d.
        """,
        options: ClientSettings.putOptions,
        operands: .files,
        sections: [
            ManualSection(
                "Examples",
                [
                    .example(
                        """
                        onward put big.bin https://example.org/files/big.bin
                        onward put --token-file token *.jpg https://example.org/files/inbox/
                        onward put -r photos https://example.org/files/photos/
                        """)
                ])
        ])

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        command.run(arguments, check: check) { plan, settings, report, signals in
            let clients = CommandClients()
            let status = await put(plan, settings, report, signals, clients)
            await clients.shutDown()
            return status
        }
    }

    private static func check(_ settings: ClientSettings, _ operands: [CommandArgument]) throws(OptionError) -> Plan {
        guard operands.count >= 2, let last = operands.last else {
            throw OptionError(
                operands.isEmpty
                    ? "FILE and URL are missing"
                    : "there is one operand, '\(operands[0])', but FILE and URL are required")
        }
        let files = operands.dropLast()
        let url = try TransferURL(last)
        try settings.check(url)
        guard files.count == 1 || !settings.isRecursive else {
            throw OptionError("-r accepts one DIR, and \(files.count) are given")
        }
        guard files.count == 1 || url.isCollection else {
            throw OptionError("several files need a URL that ends in /, not '\(last)'")
        }
        guard files.count == 1 || settings.stateFile == nil else {
            throw OptionError("--state cannot be combined with several files: a state file holds one transfer")
        }
        var paths: [FilePath] = []
        var seen: Set<FilePath> = []
        var directories: [FilePath: FilePath] = [:]
        for file in files {
            if file == "-" {
                throw OptionError("standard input cannot be read again to resume; write it to a file first")
            }
            guard !file.isEmpty else { throw OptionError("a file's name is empty") }
            let path = absolute(FilePath(file.bytes), &directories)
            guard seen.insert(path).inserted else { throw OptionError("'\(file)' is given twice") }
            paths.append(path)
        }
        return Plan(paths: paths, url: url)
    }

    /// The absolute path of a file.
    /// - Parameter directories: the directories that were resolved for other files. They are not resolved again.
    private static func absolute(_ path: FilePath, _ directories: inout [FilePath: FilePath]) -> FilePath {
        let name = path.lastComponent
        if let directory = directories[path.directory], !["", ".", ".."].contains(name) {
            return directory.appending(name)
        }
        // A file whose directory does not exist has no absolute path; opening the file reports that later.
        guard let absolute = path.absolute else { return path }
        if absolute.lastComponent == name { directories[path.directory] = absolute.directory }
        return absolute
    }

    private static func put(
        _ plan: Plan, _ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch,
        _ clients: CommandClients
    ) async -> ExitStatus {
        SentFilesLists.restoreStates()
        let finished = SentFilesLists()
        if settings.isRecursive {
            return await put(folder: plan.paths[0], to: plan.url, settings, report, signals, clients, finished)
        }
        guard plan.paths.count > 1 else {
            let job = TransferJob(plan.paths[0], to: plan.url, settings)
            let status = await job.run(report, signals, clients, finished)
            if status == .done { finished.removeCompleteLists([job.identity]) }
            return status
        }
        let jobs = plan.paths.map { TransferJob($0, to: plan.url, settings) }
        let identities = jobs.map(\.identity)
        finished.openList(of: identities, shouldRestart: settings.shouldRestart)
        var uploads = SeveralUploads(jobs, settings, report, signals, clients, finished)
        let transfers = SimultaneousTransfers(settings, report, signals, uploads.progress)
        let result = await transfers.run(&uploads)
        finished.closeList(isDone: result == .done)
        finished.removeCompleteLists(identities)
        return result
    }

    private static func put(
        folder path: FilePath, to url: TransferURL, _ settings: ClientSettings, _ report: TransferReport,
        _ signals: SignalWatch, _ clients: CommandClients, _ finished: SentFilesLists
    ) async -> ExitStatus {
        do throws(CommandFailure) {
            let root: FilePath
            let directory: FileDescriptor
            do throws(Errno) {
                root = try path.resolved()
                directory = try FileDescriptor.open(root, [.readOnly, .directory])
            } catch {
                throw CommandFailure(
                    .noSource, "no-such-source",
                    error == .notDirectory
                        ? "\(path) is not a directory; -r sends directories" : "\(path) cannot be opened: \(error)")
            }
            let identity = TransferIdentity.put(root, url, method: .put)
            let state = try CommandState.claim(identity, chosen: nil)
            let folder = try FolderTransfer(identity, url, settings, report, signals, clients)
            let sent = SentTable(of: identity, in: try? PrivateDirectory.states())
            var uploads: FolderUploads
            do throws(Errno) { uploads = try FolderUploads(folder, directory, sent, finished) } catch {
                throw CommandFailure(.noSource, "source-unavailable", "\(path) cannot be read: \(error)")
            }
            let count = folder.countFiles(in: directory)
            let result = await folder.run(&uploads)
            count.raise()
            // If running the command again does not help, it starts from the beginning.
            if result != .tryAgain { sent.remove() }
            return withExtendedLifetime(state) { result }
        } catch {
            return report.ended(error)
        }
    }
}
