import CommandLineInterface
import SystemCalls

/// `onward get`: downloads a file.
enum GetCommand {
    private struct Plan: Sendable {
        var url: TransferURL
        /// The path of the downloaded file. If --output is a directory, the file is in it and has the name of the last
        /// segment of the URL's path.
        var output: FilePath
    }

    static let command = ClientCommand(
        "get", "download a file", usage: "[OPTIONS] URL [-o FILE]",
        """
        Downloads a file. Until the file is complete it has a temporary name that ends in .part.
        Then it gets its final name, and replaces a file that had this name. After an
        interruption run the same command again to resume. Sizes have units K M G T (powers of
        1000) and KiB MiB GiB TiB (of 1024), durations s m h d.
        """,
        options: ClientSettings.getOptions,
        sections: [
            ManualSection("Examples", [.example("onward get https://example.org/files/big.bin -o copy.bin")])
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
            guard !path.isDirectory else { return unusable("is a directory") }
            let clients = CommandClients()
            let status = await TransferJob(plan.url, to: path, settings).run(
                report, signals, clients, FinishedFiles())
            await clients.shutDown()
            return status
        }
    }

    private static func check(_ settings: ClientSettings, _ operands: [CommandArgument]) throws(OptionError) -> Plan {
        guard let first = operands.first else { throw OptionError("URL is missing") }
        guard operands.count == 1 else {
            throw OptionError("unexpected '\(operands[1])': get accepts one URL, and -o names the file")
        }
        let url = try TransferURL(first)
        if url.hasCredentials && settings.tokenFile != nil {
            throw OptionError("--token-file and a user in the URL cannot be combined")
        }
        var output = settings.output ?? "."
        if output.hasSuffix("/") || output.isDirectory {
            guard let name = url.fileName else {
                throw OptionError("'\(first)' contains no file name; name the file with -o FILE")
            }
            output = output.appending(FilePath(name))
        }
        return Plan(url: url, output: output)
    }
}
