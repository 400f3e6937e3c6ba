import ClusterStorage
import CommandLineInterface
import ObjectStorage
import SystemCalls
import UploadStorage

/// `onward migrate`: copies a data directory to a database and an object storage that several servers share, or back.
struct MigrateCommand {
    static let page = ManualPage(
        "migrate", "copy data to a database and an object storage, or back",
        usage: ["migrate [OPTIONS]"],
        """
        Copies the data directory of a stopped server to the database and the object storage of
        'onward serve --catalog': files, unfinished uploads with their offsets and URLs, stored
        responses and events. With --back it copies in the other direction. No server may be
        running then, and none can be started before the end of the copy. The command verifies
        the SHA-256 of each copy, except contents of at most 64 KiB in the database. The files
        and uploads of the source are not changed; the catalog of an older version is converted.
        After an interruption run the same command again: it copies what is still missing.

        An option that 'onward serve' also has can be given as an environment variable, such as
        ONWARD_CATALOG.

        Exit status: 0 everything was copied; 64 wrong usage; 74 something could not be copied; 75
        a server or another 'onward migrate' uses the data directory, or with --back the
        database; or the database or the storage cannot be reached.
        """,
        options: options.map(\.manual))

    static let options: [CommandOption<MigrateCommand>] =
        StorageSettings.options(\.storage, group: "Options", root: "data directory (required)")
        + [
            CommandOption(
                flag: "back", group: "Options", "copy from the database and the object storage to the directory"
            ) { $0.isBack = true }
        ]

    private var storage = StorageSettings()
    private var isBack = false

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        page.run(arguments) { () throws(OptionError) in
            var command = MigrateCommand()
            try OptionParser(options: options)
                .parse(arguments, environment: ServeSettings.variables, into: &command)
            guard let cluster = command.storage.cluster, let root = command.storage.givenRoot else {
                throw OptionError("--root, --catalog and --blobs are required")
            }
            return command.run(root, cluster)
        }
    }

    private func run(_ root: String, _ cluster: ClusterLocation) -> ExitStatus {
        // The directory, or the database and the storage, that the message about an error names.
        var place = root
        do throws(StoreError) {
            let directory = try StoreCopy.Place.directory(root, creates: isBack)
            defer { directory.close(isChanged: isBack) }
            place = "\(cluster)"
            let shared = try StoreCopy.Place.cluster(
                cluster, credentials: ObjectCredentials(environment: Environment.variables),
                isExclusive: isBack
            ) { note in
                if note.isProblem { Console.error("onward migrate: \(DisplayText.printable(note.text))") }
            }
            defer { shared.close(isChanged: true) }
            place = "\(root), or \(cluster)"
            var lastReport = SystemClock.monotonicNanoseconds()
            var copy = StoreCopy(
                from: isBack ? shared : directory, to: isBack ? directory : shared
            ) { report in
                let now = SystemClock.monotonicNanoseconds()
                guard now - lastReport >= Self.reportInterval else { return }
                lastReport = now
                Console.error("onward migrate: \(Self.summary(of: report)) so far")
            }
            let report = try copy.run()
            for problem in report.problems { Console.error("onward migrate: \(DisplayText.printable(problem))") }
            Console.output("copied " + Self.summary(of: report))
            return report.problems.isEmpty ? .done : .inputOutput
        } catch {
            let used = DisplayText.printable(place)
            let message =
                switch error {
                case .inUse: "a server or another 'onward migrate' uses \(used); stop it first"
                case .unusableRoot(let reason): "\(used) cannot be used: \(reason)"
                default: "\(used): \(error)"
                }
            Console.error("onward migrate: \(message)")
            return ExitStatus(error)
        }
    }

    private static let reportInterval: Int64 = 5_000_000_000

    private static func summary(of report: StoreCopy.Report) -> String {
        "files: \(report.files), unfinished uploads: \(report.uploads), stored responses: \(report.responses), events:"
            + " \(report.events); bytes: \(report.bytes); already present: \(report.present)"
    }
}
