import CommandLineInterface
import ConformanceKit
import Foundation
import SystemCalls

/// `onward-conformance client`.
enum ClientCommand {
    static func run(_ arguments: [String]) -> Int32 {
        if arguments.contains("--help") || arguments.contains("-h") {
            Output.write(HelpText(page, of: "onward-conformance").text + "\n")
            return 0
        }
        let options: ClientOptions
        do throws(OptionError) {
            options = try ClientOptions.parse(arguments)
        } catch {
            return OnwardConformance.misused(error.message)
        }
        do {
            return try judge(options)
        } catch {
            Output.complain("\(error)")
            return 2
        }
    }

    private static func judge(_ options: ClientOptions) throws -> Int32 {
        var terminal = TerminalReport(
            colours: Terminal.isBehind(1) && ProcessInfo.processInfo.environment["NO_COLOR"] == nil,
            width: Terminal.columns(of: 1) ?? 120)
        let report = try ClientRun(options.settings).run { Output.write(terminal.line(of: $0)) }
        guard Output.write(terminal.closing(report, strict: options.reporting.strict)) else { return 2 }
        if let path = options.reporting.json {
            try OnwardConformance.save(ClientJSONReport(report, strict: options.reporting.strict).data(), to: path)
        }
        try OnwardConformance.save(
            report, strict: options.reporting.strict, junit: options.reporting.junit, html: options.reporting.html)
        return report.exitStatus(strict: options.reporting.strict)
    }
}
