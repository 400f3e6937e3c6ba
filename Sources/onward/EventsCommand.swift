import ClusterStorage
import CommandLineInterface
import Foundation
import SystemCalls
import UploadStorage

/// `onward events`: the undelivered events.
struct EventsCommand {
    static let page = ManualPage(
        "events", "list, retry or drop undelivered events",
        usage: ["events list [OPTIONS]", "events retry EVENT... [OPTIONS]", "events drop EVENT... [OPTIONS]"],
        """
        'onward serve --events' keeps each event until it is delivered or dropped. If an event
        could not be delivered within the time of the setting retry=, it is set aside: the server
        tries it again only after 'onward events retry'. EVENT is the ID of an event, or its first
        digits. --all means all events that are set aside. The server can be running.

        list prints for each event the ID, the time, the state (waiting, set-aside or retried),
        the kind, the upload, and the method and target of the upload. retry makes the server
        deliver events that are set aside. drop removes events that are set aside or waiting: the
        receiver never gets them. With --catalog the commands are about the events of all servers
        with this database.

        An option that 'onward serve' also has can be given as an environment variable, such as
        ONWARD_ROOT.

        Exit status: 0 done; 64 wrong usage; 66 no such event; 74 unusable directory or database;
        75 the database cannot be reached.
        """,
        options: options.map(\.manual))

    static let options: [CommandOption<EventsCommand>] =
        StorageSettings.inspectionOptions(\.storage, hasBlobs: false)
        + [
            CommandOption(flag: "all", group: "Options", "retry or drop all events that are set aside") {
                $0.isSelectingAll = true
            },
            CommandOption(flag: "json", group: "Options", "print one JSON object on each line") { $0.isJSON = true },
        ]

    private var storage = StorageSettings()
    private var isSelectingAll = false
    private var isJSON = false

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        page.run(arguments) { () throws(OptionError) in
            var command = EventsCommand()
            let words = try OptionParser(options: options)
                .operands(
                    of: arguments, environment: StorageSettings.inspectionVariables(arguments), into: &command
                )
                .map(\.description)
            try command.storage.check(hasBlobs: false)
            let names = Array(words.dropFirst())
            let isSelectingAll = command.isSelectingAll
            switch words.first {
            case "list" where names.isEmpty && !isSelectingAll: return command.list()
            case "retry" where names.isEmpty == isSelectingAll:
                return command.change(names, "retried", isOnlySetAside: true) { (events, numbers) throws(StoreError) in
                    try events.retry(numbers)
                }
            case "drop" where names.isEmpty == isSelectingAll:
                return command.change(names, "dropped", isOnlySetAside: isSelectingAll) {
                    (events, numbers) throws(StoreError) in try events.drop(numbers)
                }
            case "retry", "drop":
                throw OptionError(
                    isSelectingAll
                        ? "'\(names[0])' and --all cannot be combined"
                        : "EVENT or --all is missing; 'onward events list' lists the events")
            default: throw OptionError("give 'list', 'retry EVENT', 'retry --all', 'drop EVENT' or 'drop --all'")
            }
        }
    }

    private func list() -> ExitStatus {
        do throws(StoreError) {
            try events().forEach { print($0) }
            return .done
        } catch { return reportFailure(error) }
    }

    private func events() throws(StoreError) -> any EventRecords {
        if let catalog = storage.catalog { return try ClusterEvents(catalog) }
        return try RecordedEvents(root: storage.root)
    }

    private func print(_ entry: OutboxEntry) {
        let event = entry.event
        let time = Date(timeIntervalSince1970: TimeInterval(event.time) / 1000).ISO8601Format()
        if isJSON {
            Console.output(
                JSONLine([
                    ("event", .text(event.id)), ("time", .text(time)), ("state", .text(entry.state.name)),
                    ("kind", .text(event.kind.rawValue)), ("upload", .text(event.upload)),
                    ("method", .text(event.method)), ("target", .text(event.target)),
                    ("principal", .text(event.principal)),
                ]).text)
        } else {
            Console.output(
                "\(event.id) \(time) \(entry.state.name) \(event.kind.rawValue) \(event.upload) \(event.method)"
                    + " \(DisplayText.printable(event.target))")
        }
    }

    /// Changes the named events, or with `--all` those that are set aside.
    /// - Parameter isOnlySetAside: whether named events in other states are counted, but not changed.
    private func change(
        _ names: [String], _ participle: String, isOnlySetAside: Bool,
        _ body: (any EventRecords, [Int64]) throws(StoreError) -> Void
    ) -> ExitStatus {
        do throws(StoreError) {
            let events = try events()
            var numbers: [Int64] = []
            var waiting = 0
            var found = Array(repeating: 0, count: names.count)
            try events.forEach { entry in
                let matches = names.indices.filter { !names[$0].isEmpty && entry.event.id.hasPrefix(names[$0]) }
                for index in matches { found[index] += 1 }
                guard isSelectingAll || !matches.isEmpty else { return }
                if isOnlySetAside && entry.state != .setAside {
                    if !isSelectingAll { waiting += 1 }
                } else {
                    numbers.append(entry.number)
                }
            }
            for (name, count) in zip(names, found) where count != 1 {
                Console.error(
                    "onward events: "
                        + (count > 1
                            ? "several events begin with '\(DisplayText.printable(name))'; give more digits"
                            : "there is no event '\(DisplayText.printable(name))'"))
                return .noSource
            }
            try body(events, numbers)
            Console.output("events \(participle): \(numbers.count)")
            if waiting > 0 {
                Console.output("events that need no retry, because the server still tries to deliver them: \(waiting)")
            }
            return .done
        } catch { return reportFailure(error) }
    }

    private func reportFailure(_ error: StoreError) -> ExitStatus {
        let place = DisplayText.printable(storage.description)
        let message =
            if case .unusableRoot(let reason) = error { "\(place) cannot be used: \(reason)" } else {
                "\(place): \(error)"
            }
        Console.error("onward events: \(message)")
        return ExitStatus(error)
    }
}

extension OutboxEntry.State {
    fileprivate var name: String {
        switch self {
        case .waiting: "waiting"
        case .setAside: "set-aside"
        case .retried: "retried"
        }
    }
}
