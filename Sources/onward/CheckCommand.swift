import ClusterStorage
import CommandLineInterface
import Digests
import Glibc
import ObjectStorage
import UploadStorage

/// `onward check`: verifies a data directory that no server uses, or a database and an object storage.
struct CheckCommand {
    static let page = ManualPage(
        "check", "verify a data directory, or a shared storage",
        usage: ["check [OPTIONS]"],
        """
        Verifies the data directory of a stopped server and changes nothing. It prints a
        line for each finding. Damage means that acknowledged data is lost. A note reports the
        effect of a crash or of a change by hand; the next start repairs or ignores it.

        With --catalog and --blobs it verifies the database and the object storage of servers,
        which can be running. Notes then report stored bytes that no upload or file needs (the
        servers usually delete them), wrong totals of usage, and settings of the database with
        which a crash can lose data. The command reads all rows and lists all objects, but reads
        the content of objects only with --digests.

        An option that 'onward serve' also has can be given as an environment variable, such as
        ONWARD_ROOT.

        Exit status: 0 no damage; 64 wrong usage; 74 damage, or an unusable directory, database
        or storage; 75 a server uses the directory, or the database or the storage cannot be
        reached.
        """,
        options: options.map(\.manual))

    static let options: [CommandOption<CheckCommand>] =
        StorageSettings.inspectionOptions(\.storage)
        + [
            CommandOption(
                flag: "digests", group: "Options",
                "print the SHA-256 of every published file in the format of\nsha256sum, to compare the files with a copy of them"
            ) { $0.shouldPrintDigests = true },
            CommandOption(flag: "json", group: "Options", "print one JSON object on each line") { $0.isJSON = true },
        ]

    private var storage = StorageSettings()
    private var shouldPrintDigests = false
    private var isJSON = false

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        page.run(arguments) { () throws(OptionError) in
            var command = CheckCommand()
            try OptionParser(options: options)
                .parse(arguments, environment: StorageSettings.inspectionVariables(arguments), into: &command)
            try command.storage.check()
            return command.run()
        }
    }

    private func run() -> ExitStatus {
        do throws(StoreError) {
            let check = try check()
            var summary = try check.run(report)
            if shouldPrintDigests { summary = try check.forEachDigest(printDigest, failures: report) }
            conclude(summary)
            return summary.damages == 0 ? .done : .inputOutput
        } catch {
            return reportFailure(error)
        }
    }

    private func check() throws(StoreError) -> any StoreCheck {
        if let cluster = storage.cluster {
            let credentials = ObjectCredentials(environment: Environment.variables)
            return ClusterCheck(try ClusterInspection(cluster, credentials: credentials))
        }
        let scratch = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        return try DataDirectoryCheck(root: storage.root, scratch: scratch)
    }

    private func report(_ finding: CheckFinding) {
        let severity = finding.kind.isDamage ? "damage" : "note"
        if isJSON {
            output([
                ("event", .text("finding")), ("severity", .text(severity)), ("code", .text(finding.kind.rawValue)),
                ("path", .text(finding.path)), ("message", .text(finding.detail)),
            ])
        } else {
            Console.output(
                "\(severity): \(finding.kind.rawValue): \(DisplayText.printable(finding.path)): "
                    + DisplayText.printable(finding.detail))
        }
    }

    private func printDigest(_ name: PublishedName, _ digest: [UInt8]) {
        if isJSON {
            output([
                ("event", .text("digest")), ("sha-256", .text(digest.hexadecimal)),
                ("path", .text("files/" + name.path)),
            ])
        } else {
            Console.output("\(digest.hexadecimal)  files/\(DisplayText.printable(name.path))")
        }
    }

    private func conclude(_ summary: CheckSummary) {
        if isJSON {
            output([
                ("event", .text("checked")), ("uploads", .number(Int64(summary.uploads))),
                ("unfinished", .number(Int64(summary.unfinished))), ("files", .number(Int64(summary.files))),
                ("findings", .number(Int64(summary.findings))), ("damages", .number(Int64(summary.damages))),
            ])
        } else {
            Console.output(
                """
                checked uploads: \(summary.uploads), unfinished: \(summary.unfinished); checked files: \(summary.files); \
                \(summary.damages == 0 ? "no damage" : "damage findings: \(summary.damages)")
                """)
        }
    }

    private func reportFailure(_ error: StoreError) -> ExitStatus {
        let root = DisplayText.printable(storage.description)
        let message =
            switch error {
            case .inUse: "a server uses \(root); stop it, or check a copy of the directory"
            case .newerSchema(let version): "\(root) was written by a newer version of onward (schema \(version))"
            case .unusableRoot(let reason), .foreignData(let reason), .damaged(let reason):
                "\(root) cannot be used: \(reason)"
            default: "\(root): \(error)"
            }
        if isJSON {
            output([("event", .text("failed")), ("code", .text(error.code)), ("message", .text(message))])
        } else {
            Console.error("onward check: \(message)")
        }
        return ExitStatus(error)
    }

    private func output(_ members: [(String, JSONLine.Value)]) { Console.output(JSONLine(members).text) }
}
