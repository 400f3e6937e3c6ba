import ConformanceKit
import Foundation
import SystemCalls

/// `onward-conformance server`.
enum ServerCommand {
    private struct Misuse: Error {
        let reason: String
    }

    private struct Options {
        var settings = ServerSettings(url: "")
        var strict = false
        var json: String?
        var junit: String?
        var html: String?
    }

    static func run(_ arguments: [String]) -> Int32 {
        do {
            let options = try parse(arguments)
            return try judge(options)
        } catch let misuse as Misuse {
            return OnwardConformance.misused(misuse.reason)
        } catch {
            FileHandle.standardError.write(Data("onward-conformance: \(error)\n".utf8))
            return 2
        }
    }

    private static func judge(_ options: Options) throws -> Int32 {
        let isTerminal = Terminal.isBehind(1)
        var terminal = TerminalReport(
            colours: isTerminal && ProcessInfo.processInfo.environment["NO_COLOR"] == nil,
            width: Terminal.columns(of: 1) ?? 120)
        let report = try ServerRun(options.settings).run { OnwardConformance.write(terminal.line(of: $0)) }
        OnwardConformance.write(terminal.closing(report, strict: options.strict))
        if let path = options.json {
            try OnwardConformance.save(JSONReport(report, strict: options.strict).data(), to: path)
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
            switch word {
            case "--start": options.settings.startCommand = try value()
            case "--method": options.settings.method = try value()
            case "--header": options.settings.fields.append(try field(value()))
            case "--profile": options.settings.profiles += try profiles(value())
            case "--only": options.settings.only.append(try value())
            case "--strict": options.strict = true
            case "--timeout": options.settings.timeout = try seconds(value())
            case "--json": options.json = try value()
            case "--junit": options.junit = try value()
            case "--html": options.html = try value()
            case _ where word.hasPrefix("-"): throw Misuse(reason: "there is no option “\(word)”")
            default:
                guard options.settings.url.isEmpty else { throw Misuse(reason: "one URL is enough") }
                options.settings.url = word
            }
        }
        if options.settings.url.isEmpty && options.settings.startCommand == nil {
            throw Misuse(reason: "a URL is missing, or --start")
        }
        return options
    }

    private static func field(_ text: String) throws -> (String, String) {
        guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
            throw Misuse(reason: "“\(text)” is no field of the form 'Name: value'")
        }
        let value = text[text.index(after: colon)...].drop { $0 == " " }
        return (String(text[..<colon]), String(value))
    }

    private static func profiles(_ text: String) throws -> [Profile] {
        try text.split(separator: ",").map { word in
            guard let profile = Profile(word) else { throw Misuse(reason: "“\(word)” is none of 3 to 8 and rfc") }
            return profile
        }
    }

    private static func seconds(_ text: String) throws -> Duration {
        guard let seconds = Double(text), seconds >= 0.1, seconds <= 600 else {
            throw Misuse(reason: "“\(text)” is no number of seconds from 0.1 to 600")
        }
        return .milliseconds(Int64(seconds * 1000))
    }
}
