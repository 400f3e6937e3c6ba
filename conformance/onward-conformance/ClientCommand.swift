import CommandLineInterface
import ConformanceKit

/// `onward-conformance client`.
enum ClientCommand {
    static func run(_ arguments: [String]) -> Int32 {
        OnwardConformance.perform(page, arguments, parse: ClientOptions.parse, verify: verify)
    }

    private static func verify(_ options: ClientOptions) throws -> Int32 {
        var terminal = OnwardConformance.terminal()
        let report = try ClientRun(options.settings).run { Output.write(terminal.line(of: $0)) }
        guard Output.write(terminal.closing(report, strict: options.reporting.strict)) else { return 2 }
        if let path = options.reporting.json {
            try OnwardConformance.save(JSONReport(report, strict: options.reporting.strict).data(), to: path)
        }
        try OnwardConformance.save(
            report, strict: options.reporting.strict, junit: options.reporting.junit, html: options.reporting.html)
        return report.exitStatus(strict: options.reporting.strict)
    }
}
