import CommandLineInterface
import ConformanceKit

/// What `onward-conformance server` was told, and the options that tell it.
struct ServerOptions: Sendable {
    var settings = ServerSettings(url: "")
    var reporting = Reporting()

    static let table: [CommandOption<ServerOptions>] =
        [
            CommandOption(
                "start", "CMD", group: "Server",
                "start the server with CMD, in which {port} and {root} are\nreplaced, and also kill and restart it; URL may contain {port}\n(http://127.0.0.1:{port}/files/)"
            ) { options, value throws(OptionError) in options.settings.startCommand = value },
            CommandOption(
                "method", "M", group: "Server", values: .words(["POST", "PUT"]), "method of creations (POST)"
            ) { options, value throws(OptionError) in options.settings.method = value },
            CommandOption(
                "header", "'N: V'", group: "Server", repeatable: true,
                "field of every request: credentials, for example; repeatable"
            ) { options, value throws(OptionError) in options.settings.fields.append(try field(value)) },
            CommandOption(
                "timeout", "SECONDS", group: "Server", "how long to wait for anything (5)"
            ) { options, value throws(OptionError) in options.settings.timeout = try seconds(value) },

            CommandOption(
                "profile", "P,...", group: "Cases", repeatable: true,
                values: .words(["3", "4", "5", "6", "7", "8", "rfc"]),
                "versions to judge by: 3 to 8, rfc (those that the server\nspeaks; the latest one is the base, on which all cases run)"
            ) { options, value throws(OptionError) in options.settings.profiles += try profiles(value) },
            CommandOption(
                "only", "GLOB", group: "Cases", repeatable: true,
                "only cases whose ID matches, such as '4.4/*'; repeatable"
            ) { options, value throws(OptionError) in options.settings.only.append(value) },
        ] + Reporting.options(\.reporting)

    /// - Throws: what is wrong with the command line.
    static func parse(_ arguments: [String]) throws(OptionError) -> ServerOptions {
        var options = ServerOptions()
        let operands = try OptionParser(options: table).operands(of: arguments, into: &options)
        guard operands.count <= 1 else { throw OptionError("one URL is enough") }
        if let url = operands.first { options.settings.url = url }
        if options.settings.url.isEmpty && options.settings.startCommand == nil {
            throw OptionError("a URL is missing, or --start")
        }
        return options
    }

    private static func field(_ text: String) throws(OptionError) -> (String, String) {
        guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
            throw OptionError("“\(text)” is no field of the form 'Name: value'")
        }
        let value = text[text.index(after: colon)...].drop { $0 == " " }
        return (String(text[..<colon]), String(value))
    }

    private static func profiles(_ text: String) throws(OptionError) -> [Profile] {
        var profiles: [Profile] = []
        for word in text.split(separator: ",") {
            guard let profile = Profile(word) else { throw OptionError("“\(word)” is none of 3 to 8 and rfc") }
            profiles.append(profile)
        }
        return profiles
    }

    private static func seconds(_ text: String) throws(OptionError) -> Duration {
        guard let seconds = Double(text), seconds >= 0.1, seconds <= 600 else {
            throw OptionError("“\(text)” is no number of seconds from 0.1 to 600")
        }
        return .milliseconds(Int64(seconds * 1000))
    }
}
