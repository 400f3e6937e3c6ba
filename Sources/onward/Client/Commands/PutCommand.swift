import CommandLineInterface
import HTTPSemantics
import SystemCalls

/// `onward put`: uploads files.
enum PutCommand {
    private struct Plan: Sendable {
        /// The absolute paths of the files.
        var paths: [FilePath]
        var url: TransferURL
    }

    static let command = ClientCommand(
        "put", "upload files; a URL that ends in / is a collection", usage: "[OPTIONS] FILE... URL",
        """
        Uploads files. If URL ends in /, the files are posted to that collection, and the server
        chooses their URLs; otherwise a single file is put at URL. After an interruption run the
        same command again to resume. If the size, modification time or inode of a file has
        changed in the meantime, for example by 'touch', --restart is needed. Several small files
        are sent at the same time if the server supports resumable uploads, except with
        --limit-rate or --verbose. Sizes have units K M G T (powers of 1000) and KiB MiB GiB TiB
        (of 1024), durations s m h d.
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
        guard files.count == 1 || url.isCollection else {
            throw OptionError("several files need a URL that ends in /, not '\(last)'")
        }
        guard files.count == 1 || settings.stateFile == nil else {
            throw OptionError("--state cannot be used with several files: a state file holds one transfer")
        }
        if url.hasCredentials && settings.tokenFile != nil {
            throw OptionError("--token-file and a user in the URL cannot be combined")
        }
        var paths: [FilePath] = []
        var seen: Set<FilePath> = []
        for file in files {
            if file == "-" {
                throw OptionError("standard input cannot be read again to resume; write it to a file first")
            }
            guard !file.isEmpty else { throw OptionError("a file's name is empty") }
            // A file whose directory does not exist has no absolute path; opening the file reports that later.
            let path = FilePath(file.bytes).absolute ?? FilePath(file.bytes)
            guard seen.insert(path).inserted else { throw OptionError("'\(file)' is given twice") }
            paths.append(path)
        }
        return Plan(paths: paths, url: url)
    }

    private static func put(
        _ plan: Plan, _ settings: ClientSettings, _ report: TransferReport, _ signals: SignalWatch,
        _ clients: CommandClients
    ) async -> ExitStatus {
        FinishedFiles.restoreStates()
        let finished = FinishedFiles()
        guard plan.paths.count > 1 else {
            let job = TransferJob(plan.paths[0], to: plan.url, settings)
            let status = await job.run(report, signals, clients, finished)
            if status == .done { finished.removeCompleteLists([job.identity]) }
            return status
        }
        let jobs = plan.paths.map { TransferJob($0, to: plan.url, settings) }
        let transfers = jobs.map(\.identity)
        finished.begin(transfers, restarts: settings.restarts)
        var uploads = SimultaneousUploads(jobs, settings, report, signals, clients, finished)
        let result = await uploads.run()
        finished.end(isDone: result == .done)
        finished.removeCompleteLists(transfers)
        return result
    }
}
