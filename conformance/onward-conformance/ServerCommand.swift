import ConformanceKit

/// `onward-conformance server`.
enum ServerCommand {
    static func run(_ arguments: [String]) -> Int32 {
        OnwardConformance.perform(page, arguments, parse: ServerOptions.parse) { options in
            try options.reporting.write(JSONReport<ServerPart>.init) { try ServerRun(options.settings).run($0) }
        }
    }
}
