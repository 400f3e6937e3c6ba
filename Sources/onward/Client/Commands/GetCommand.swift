import CommandLineInterface
import ResumableTransfer
import SystemCalls

/// `onward get`: downloads a file or a folder.
enum GetCommand {
    private struct Plan: Sendable {
        var url: TransferURL
        /// The path of the downloaded file. If --output is a directory, the file is in it and has the name of the last
        /// segment of the URL's path.
        var output: FilePath
    }

    static let command = ClientCommand(
        "get", "download a file or a folder", usage: ["[OPTIONS] URL [-o FILE]", "-r [OPTIONS] URL/ DIR"],
        """
        Downloads a file. Until the file is complete it has a temporary name that ends in .part.
        Then it gets its final name, and replaces a file that had this name. After an
        interruption run the same command again to resume.

        With -r URL/ DIR all files below URL are written to the same paths below DIR, which is
        created if it does not exist. The server has to list folders in JSON as Onward does. Files
        that exist in DIR with the same content are skipped. Nothing is written outside DIR.

        Sizes have units K M G T (powers of 1000) and KiB MiB GiB TiB (of 1024), durations
        s m h d.
        """,
        options: ClientSettings.getOptions,
        sections: [
            ManualSection(
                "Examples",
                [
                    .example(
                        """
                        onward get https://example.org/files/big.bin -o copy.bin
                        onward get -r https://example.org/files/photos/ photos
                        """)
                ])
        ])

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        command.run(arguments, check: check) { plan, settings, report, signals in
            func unusable(_ reason: String) -> ExitStatus {
                return report.ended(
                    CommandFailure(.inputOutput, "destination-unusable", "'\(plan.output)' \(reason)"))
            }
            guard let path = plan.output.absolute else {
                return unusable("is in a directory that does not exist")
            }
            let clients = CommandClients()
            if settings.isRecursive {
                let status = await get(plan.url, to: path, settings, report, signals, clients)
                await clients.shutDown()
                return status
            }
            guard !path.isDirectory else { return unusable("is a directory") }
            let status = await TransferJob(plan.url, to: path, settings).run(
                report, signals, clients, SentFilesLists())
            await clients.shutDown()
            return status
        }
    }

    private static func check(_ settings: ClientSettings, _ operands: [CommandArgument]) throws(OptionError) -> Plan {
        guard let first = operands.first else { throw OptionError("URL is missing") }
        if settings.isRecursive {
            guard operands.count == 2 else {
                throw OptionError(operands.count == 1 ? "DIR is missing" : "-r accepts one URL and one DIR")
            }
            let url = try TransferURL(first)
            try settings.check(url)
            guard !operands[1].isEmpty else { throw OptionError("the name of DIR is empty") }
            return Plan(url: url, output: FilePath(operands[1].bytes))
        }
        guard operands.count == 1 else {
            throw OptionError("unexpected '\(operands[1])': get accepts one URL, and -o names the file")
        }
        let url = try TransferURL(first)
        try settings.check(url)
        var output = settings.output ?? "."
        if output.hasSuffix("/") || output.isDirectory {
            guard let name = url.fileName else {
                throw OptionError("'\(first)' contains no file name; name the file with -o FILE")
            }
            output = output.appending(FilePath(name))
        }
        return Plan(url: url, output: output)
    }

    private static func get(
        _ url: TransferURL, to path: FilePath, _ settings: ClientSettings, _ report: TransferReport,
        _ signals: SignalWatch, _ clients: CommandClients
    ) async -> ExitStatus {
        do throws(CommandFailure) {
            let root: FilePath
            let directory: FileDescriptor
            var isCreated = false
            do throws(Errno) {
                do throws(Errno) {
                    try FileDescriptor.makeDirectory(path, mode: 0o777)
                    isCreated = true
                } catch {
                    if error != .fileExists { throw error }
                }
                root = try path.resolved()
                directory = try FileDescriptor.open(root, [.readOnly, .directory])
            } catch {
                throw CommandFailure(.inputOutput, "destination-unusable", "'\(path)' cannot be used: \(error)")
            }
            // A new directory in which nothing was written is removed. The removal fails if there is anything in it.
            defer { if isCreated { try? directory.removeDirectory(at: root) } }
            let identity = TransferIdentity.get(url, to: root)
            let state = try CommandState.claim(identity, chosen: nil)
            let folder = try FolderTransfer(identity, url, settings, report, signals, clients)
            let synchronization = FileSystemSynchronization(directory)
            var downloads = FolderDownloads(folder, directory, synchronization)
            let result = await folder.run(&downloads)
            if result == .done { isCreated = false }
            if let failure = await synchronization.finish() {
                throw CommandFailure(
                    .inputOutput, "destination-unusable", "The files may not be on stable storage: \(failure)")
            }
            return withExtendedLifetime(state) { result }
        } catch {
            return report.ended(error)
        }
    }
}
