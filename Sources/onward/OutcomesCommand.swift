import ClusterStorage
import CommandLineInterface
import Foundation
import Gateway
import HTTPSemantics
import ObjectStorage
import UploadStorage

/// `onward outcomes`: the requests to applications whose outcome is unknown.
struct OutcomesCommand {
    static let page = ManualPage(
        "outcomes", "list, send again or drop requests whose outcome is unknown",
        usage: [
            "outcomes list [OPTIONS]", "outcomes resend UPLOAD... [OPTIONS]", "outcomes drop UPLOAD... [OPTIONS]",
        ],
        """
        'onward serve' sends a complete upload to the application of its route. If the server
        gets no complete response, the outcome is unknown: the application may have processed the
        upload. Without repeat=safe the server then does not send the request again, but keeps
        it: in retained/ of the data directory, or with --catalog in the database and the object
        storage. UPLOAD is the value that the application got in Onward-Upload, or its first
        digits. Before you use resend or drop, find out whether the application has processed the
        upload. The server can be running.

        list prints the upload, the time, the method and target, the length, the principal and
        the application of each request. resend sends requests again, with the principal but
        without the credentials of the client. It removes a request when the application has
        responded with a status other than 503. drop removes requests and their content.

        An option that 'onward serve' also has can be given as an environment variable, such as
        ONWARD_ROOT.

        Exit status: 0 done; 64 wrong usage; 66 no such request; 69 no complete response, or 503;
        74 unusable directory, database or storage; 75 the request is being sent by another
        command, or the database or the storage cannot be reached.
        """,
        options: options.map(\.manual))

    static let options: [CommandOption<OutcomesCommand>] =
        StorageSettings.inspectionOptions(\.storage) + [
            CommandOption(
                "origin-cacert", "F", group: "Options",
                "PEM certificates to trust for https applications instead of\nthe system's"
            ) { command, value throws(OptionError) in
                command.originCertificates = try ServeSettings.certificates(in: value)
            },
            CommandOption(
                "timeout", "DURATION", group: "Options",
                "maximum time in which no byte moves between this command and the\napplication [default: 60s]"
            ) { command, value throws(OptionError) in command.timeout = .seconds(try Quantity.seconds(value)) },
            CommandOption(flag: "json", group: "Options", "print one JSON object on each line") { $0.isJSON = true },
        ]

    private var storage = StorageSettings()
    private var originCertificates: String?
    private var timeout = Duration.seconds(60)
    private var isJSON = false

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        page.run(arguments) { () throws(OptionError) in
            var command = OutcomesCommand()
            let words = try OptionParser(options: options)
                .operands(
                    of: arguments, environment: StorageSettings.inspectionVariables(arguments), into: &command
                )
                .map(\.description)
            try command.storage.check()
            let names = Array(words.dropFirst())
            switch words.first {
            case "list" where names.isEmpty: return command.list()
            case "resend" where !names.isEmpty: return command.forEach(names, command.resend)
            case "drop" where !names.isEmpty: return command.forEach(names, command.drop)
            case "resend", "drop": throw OptionError("UPLOAD is missing; 'onward outcomes list' lists the uploads")
            default: throw OptionError("give 'list', 'resend UPLOAD' or 'drop UPLOAD'")
            }
        }
    }

    private func list() -> ExitStatus {
        do {
            let requests = try requests()
            for key in try requests.keys() {
                guard let description = try? requests.description(key),
                    let outcome = try? UnknownOutcome(json: description)
                else {
                    let reason = "is in use or cannot be read"
                    Console.output(
                        isJSON
                            ? JSONLine([("upload", .text(key)), ("message", .text("it " + reason))]).text
                            : "\(key) \(reason)")
                    continue
                }
                print(outcome)
            }
            return .done
        } catch { return reportFailure(error) }
    }

    private func requests() throws(StoreError) -> any RetainedRequests {
        if let cluster = storage.cluster {
            let credentials = ObjectCredentials(environment: Environment.variables)
            return try RetainedRows(ClusterInspection(cluster, credentials: credentials))
        }
        return try RetainedFiles(root: storage.root)
    }

    private func print(_ outcome: UnknownOutcome) {
        let time = Date(timeIntervalSince1970: TimeInterval(outcome.time)).ISO8601Format()
        if isJSON {
            Console.output(
                JSONLine([
                    ("upload", .text(outcome.upload)), ("time", .text(time)), ("method", .text(outcome.method)),
                    ("target", .text(outcome.target)), ("length", .number(outcome.length)),
                    ("principal", .text(outcome.principal)), ("route", .text(outcome.route)),
                    ("origin", .text(outcome.origin)),
                ]).text)
        } else {
            Console.output(
                "\(outcome.upload) \(time) \(outcome.method) \(DisplayText.printable(outcome.target))"
                    + " length=\(outcome.length) principal=\(DisplayText.printable(outcome.principal))"
                    + " origin=\(DisplayText.printable(outcome.origin))")
        }
    }

    private typealias Action = (any RetainedRequests, String, RetainedRequest) throws -> ExitStatus

    /// Runs an action for each request. Does nothing if a name does not identify one request.
    /// - Returns: the first status other than `done`.
    private func forEach(_ names: [String], _ action: Action) -> ExitStatus {
        do {
            let requests = try requests()
            let known = try requests.keys()
            var keys: [String] = []
            for name in names {
                let matches = known.filter { !name.isEmpty && $0.hasPrefix(name) }
                guard let key = matches.first, matches.count == 1 else {
                    Console.error(
                        "onward outcomes: "
                            + (matches.isEmpty
                                ? "there is no request of the upload '\(DisplayText.printable(name))'"
                                : "several uploads begin with '\(DisplayText.printable(name))'; give more digits"))
                    return .noSource
                }
                if !keys.contains(key) { keys.append(key) }
            }
            let statuses = keys.map { key in
                do {
                    // Another process may have removed the request meanwhile.
                    return try requests.request(key).map { try action(requests, key, $0) } ?? .done
                } catch { return reportFailure(error) }
            }
            return statuses.first { $0 != .done } ?? .done
        } catch { return reportFailure(error) }
    }

    private func resend(
        _ requests: any RetainedRequests, _ key: String, _ request: RetainedRequest
    ) throws -> ExitStatus {
        let outcome = try UnknownOutcome(json: request.description)
        let (response, summary) = try outcome.send(
            request, of: requests, caFile: originCertificates, timeout: timeout)
        guard let response else {
            Console.error("onward outcomes: \(summary). The request is kept.")
            return .unavailable
        }
        try requests.remove(key)
        Console.output("\(summary); the request is removed")
        if let content = response.content.bytes, !content.isEmpty {
            Console.output(DisplayText.printable(String(decoding: content, as: UTF8.self)))
        }
        return .done
    }

    private func drop(
        _ requests: any RetainedRequests, _ key: String, _ request: RetainedRequest
    ) throws -> ExitStatus {
        try requests.remove(key)
        Console.output("the request of the upload \(key) is dropped")
        return .done
    }

    private func reportFailure(_ failure: any Error) -> ExitStatus {
        let storeError = failure as? StoreError
        if storeError == .inUse {
            Console.error("onward outcomes: another process is sending this request; try again later")
            return .tryAgain
        }
        let place = DisplayText.printable(storage.description)
        let message =
            switch storeError {
            case .unusableRoot(let reason)?: "\(place) cannot be used: \(reason)"
            case .unusableHandover(let reason)?: "\(place): \(reason)"
            default: "\(place): \(failure)"
            }
        Console.error("onward outcomes: \(message)")
        return storeError.map { ExitStatus($0) } ?? .inputOutput
    }
}
