import ConformanceKit

/// `onward-conformance client`.
enum ClientCommand {
    static func run(_ arguments: [String]) -> Int32 {
        OnwardConformance.perform(page, arguments, parse: ClientOptions.parse) { options in
            try options.reporting.write(JSONReport<ClientPart>.init) { try ClientRun(options.settings).run($0) }
        }
    }
}
