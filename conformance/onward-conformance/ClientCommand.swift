import ConformanceKit
import Foundation
import SystemCalls

/// `onward-conformance client`.
enum ClientCommand {
    private struct Misuse: Error {
        let reason: String
    }

    private struct Options {
        var settings = ClientSettings()
        var strict = false
        var json: String?
        var junit: String?
        var html: String?
    }

    static func run(_ arguments: [String]) -> Int32 {
        do {
            return try judge(parse(arguments))
        } catch let misuse as Misuse {
            return OnwardConformance.misused(misuse.reason)
        } catch {
            FileHandle.standardError.write(Data("onward-conformance: \(error)\n".utf8))
            return 2
        }
    }

    private static func judge(_ options: Options) throws -> Int32 {
        var terminal = TerminalReport(
            colours: Terminal.isBehind(1) && ProcessInfo.processInfo.environment["NO_COLOR"] == nil,
            width: Terminal.columns(of: 1) ?? 120)
        let report = try ClientRun(options.settings).run { OnwardConformance.write(terminal.line(of: $0)) }
        OnwardConformance.write(terminal.closing(report, strict: options.strict))
        if let path = options.json {
            try OnwardConformance.save(ClientJSONReport(report, strict: options.strict).data(), to: path)
        }
        try OnwardConformance.save(report, strict: options.strict, junit: options.junit, html: options.html)
        return report.exitStatus(strict: options.strict)
    }

    private static func parse(_ arguments: [String]) throws -> Options {
        var options = Options()
        var rest = arguments[...]
        while let word = rest.popFirst() {
            func value() throws -> String {
                guard let value = rest.popFirst() else { throw Misuse(reason: "\(word) needs a value") }
                return value
            }
            func number(_ range: ClosedRange<Int>) throws -> Int {
                let text = try value()
                guard let number = Int(text), range.contains(number) else {
                    throw Misuse(reason: "“\(text)” is no number from \(range.lowerBound) to \(range.upperBound)")
                }
                return number
            }
            switch word {
            case "--command": options.settings.uploadCommand = try command(value(), needs: ["{file}", "{url}"])
            case "--get-command": options.settings.downloadCommand = try command(value(), needs: ["{file}", "{url}"])
            case "--runs-again-on": options.settings.runsAgainOn = Int32(try number(0...255))
            case "--runs": options.settings.mostRuns = try number(1...100)
            case "--timeout": options.settings.timeout = .seconds(try number(1...3600))
            case "--jobs": options.settings.jobs = try number(1...64)
            case "--seed": options.settings.seed = UInt64(try number(0...Int.max))
            case "--only": options.settings.only.append(try value())
            case "--strict": options.strict = true
            case "--json": options.json = try value()
            case "--junit": options.junit = try value()
            case "--html": options.html = try value()
            default: throw Misuse(reason: "client takes no “\(word)”")
            }
        }
        if options.settings.uploadCommand == nil && options.settings.downloadCommand == nil {
            throw Misuse(reason: "--command is missing, or --get-command")
        }
        return options
    }

    private static func command(_ text: String, needs words: [String]) throws -> String {
        for word in words where !text.contains(word) { throw Misuse(reason: "“\(text)” has no \(word)") }
        return text
    }
}
