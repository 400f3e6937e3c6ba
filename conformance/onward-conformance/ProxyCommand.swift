import CommandLineInterface
import ConformanceKit

/// `onward-conformance proxy`.
enum ProxyCommand {
    static func run(_ arguments: [String]) -> Int32 {
        OnwardConformance.perform(page, arguments, parse: ProxyOptions.parse, verify: verify)
    }

    private static func verify(_ options: ProxyOptions) throws -> Int32 {
        let file = try options.json.map { try ReportFile($0) }
        let terminal = OnwardConformance.terminal()
        let show = { (finding: ProxyFinding) in Output.write(terminal.line(of: finding)) }
        let report: ProxyReport
        if options.settings.upstreamPort == nil {
            report = try DeploymentRun(options.settings).run(show)
        } else {
            report = try ProxyRun(options.settings).run(show)
        }
        guard Output.write(terminal.closing(report, shouldShowTranscripts: options.shouldShowTranscripts)) else {
            return 2
        }
        try file?.write(report.json())
        return report.exitStatus
    }
}
