import CommandLineInterface
import ConformanceKit
import Foundation

/// The options `--strict`, `--json`, `--junit` and `--html` of the commands `server` and `client`, and their values.
struct Reporting: Sendable {
    var isStrict = false
    var json: String?
    var junit: String?
    var html: String?

    static func options<Settings>(
        _ path: WritableKeyPath<Settings, Reporting> & Sendable
    ) -> [CommandOption<Settings>] {
        [
            CommandOption(flag: "strict", group: "Cases", "a SHOULD that is not met also fails the run") {
                $0[keyPath: path].isStrict = true
            },
            CommandOption("json", "FILE", group: "Reports", "write the results as JSON to FILE") {
                settings, value throws(OptionError) in settings[keyPath: path].json = value
            },
            CommandOption("junit", "FILE", group: "Reports", "write the results as JUnit XML to FILE") {
                settings, value throws(OptionError) in settings[keyPath: path].junit = value
            },
            CommandOption("html", "FILE", group: "Reports", "write the results as a self-contained HTML page to FILE") {
                settings, value throws(OptionError) in settings[keyPath: path].html = value
            },
        ]
    }

    /// Runs the cases, prints each result, and writes the requested files.
    /// - Parameter document: returns the JSON report.
    /// - Returns: the exit status.
    func write<Report: CaseReport, Subject>(
        _ document: (Report, _ strict: Bool) -> JSONReport<Subject>,
        run: ((CaseResult) -> Bool) throws -> Report
    ) throws -> Int32 {
        let jsonFile = try json.map { try ReportFile($0) }
        let junitFile = try junit.map { try ReportFile($0) }
        let htmlFile = try html.map { try ReportFile($0) }
        var terminal = OnwardConformance.terminal()
        let report = try run { Output.write(terminal.line(of: $0)) }
        guard Output.write(terminal.closing(report, strict: isStrict)) else { return 2 }
        try jsonFile?.write(document(report, isStrict).data())
        try junitFile?.write(Data(JUnitReport(report, strict: isStrict).text.utf8))
        try htmlFile?.write(Data(HTMLReport(report, strict: isStrict).text.utf8))
        return report.exitStatus(strict: isStrict)
    }
}
