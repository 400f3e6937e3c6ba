import CommandLineInterface
import ConformanceKit
import Foundation
import SystemCalls

/// `onward-conformance proxy`.
enum ProxyCommand {
    static func run(_ arguments: [String]) -> Int32 {
        if arguments.contains("--help") || arguments.contains("-h") {
            Output.write(HelpText(page, of: "onward-conformance").text + "\n")
            return 0
        }
        let options: ProxyOptions
        do throws(OptionError) {
            options = try ProxyOptions.parse(arguments)
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

    private static func judge(_ options: ProxyOptions) throws -> Int32 {
        let isTerminal = Terminal.isBehind(1)
        let terminal = TerminalReport(
            colours: isTerminal && ProcessInfo.processInfo.environment["NO_COLOR"] == nil,
            width: Terminal.columns(of: 1) ?? 120)
        let show = { (finding: ProxyFinding) in Output.write(terminal.line(of: finding)) }
        let report: ProxyReport
        if options.settings.upstreamPort == nil {
            report = try DeploymentRun(options.settings).run(show)
        } else {
            report = try ProxyRun(options.settings).run(show)
        }
        guard Output.write(terminal.closing(report, showsTranscripts: options.showsTranscripts)) else { return 2 }
        if let path = options.json { try report.json().write(to: URL(fileURLWithPath: path)) }
        return report.exitStatus
    }
}
