import CommandLineInterface
import ConformanceKit
import TLS

/// The options of `onward-conformance server`, and their values.
struct ServerOptions: Sendable {
    var settings = ServerSettings(url: "")
    var reporting = Reporting()

    static let table: [CommandOption<ServerOptions>] =
        [
            CommandOption(
                "start", "CMD", group: "Server",
                "start the server with CMD, and kill and restart it in some cases.\n{port} in CMD is replaced by a free port, {root} by a data\ndirectory. URL may contain {port}, and without URL the server is\ntested at http://127.0.0.1:{port}/files/"
            ) { options, value throws(OptionError) in options.settings.startCommand = value },
            CommandOption(
                "method", "M", group: "Server", values: .words(["POST", "PUT"]),
                "method of the requests that create an upload [default: POST]"
            ) { options, value throws(OptionError) in options.settings.method = try ConnectionValues.method(value) },
            CommandOption(
                "header", "'N: V'", group: "Server", repeatable: true,
                "field of every request, for example credentials; repeatable"
            ) { options, value throws(OptionError) in options.settings.fields.append(try ConnectionValues.field(value))
            },
            CommandOption(
                "other-header", "'N: V'", group: "Server", repeatable: true,
                "field that replaces the --header of the same name and has the\ncredentials of a second principal. With it, more cases run: they test\nthe access of one principal to the uploads of another; repeatable"
            ) { options, value throws(OptionError) in
                options.settings.otherFields.append(try ConnectionValues.field(value))
            },
            CommandOption(
                "cacert", "FILE", group: "Server", "PEM certificates to trust instead of the system's"
            ) { options, value throws(OptionError) in options.settings.trust = try ConnectionValues.trust(value) },
            CommandOption(flag: "insecure", group: "Server", "accept any certificate") {
                $0.settings.trust = .anyCertificate
            },
            CommandOption(
                "disk", "SIZE", group: "Server",
                "with --start, as root: make {root} a separate file system of\nthis size (1M to 1G), which some cases fill up"
            ) { options, value throws(OptionError) in options.settings.diskSize = try size(value) },
            CommandOption(
                "timeout", "SECONDS", group: "Server", "maximum time to wait for the server [default: 5]"
            ) { options, value throws(OptionError) in options.settings.timeout = try seconds(value) },

            CommandOption(
                "profile", "P,...", group: "Cases", repeatable: true,
                values: .words(["3", "4", "5", "6", "7", "8", "rfc"]),
                "versions to test, 3 to 8 or rfc: every case runs with the latest,\nand a basic set runs with each of the others\n[default: all that the server supports]"
            ) { options, value throws(OptionError) in options.settings.profiles += try profiles(value) },
            CommandOption(
                "only", "GLOB", group: "Cases", repeatable: true,
                "run only cases whose ID matches, such as '4.4/*'; repeatable"
            ) { options, value throws(OptionError) in options.settings.only.append(value) },
        ] + Reporting.options(\.reporting)

    /// - Throws: a description of the error in the command line.
    static func parse(_ arguments: [String]) throws(OptionError) -> ServerOptions {
        var options = ServerOptions()
        let operands = try OptionParser(options: table).operands(of: arguments, into: &options)
        guard operands.count <= 1 else { throw OptionError("only one URL is allowed") }
        if let url = operands.first { options.settings.url = url }
        if options.settings.url.isEmpty && options.settings.startCommand == nil {
            throw OptionError("URL or --start is missing")
        }
        if options.settings.diskSize != nil && options.settings.startCommand == nil {
            throw OptionError("--disk needs --start")
        }
        return options
    }

    /// Parses a number of bytes, with `K`, `M` or `G` for powers of 1000.
    private static func size(_ text: String) throws(OptionError) -> Int64 {
        let factor: Int64? = ["K": 1000, "M": 1_000_000, "G": 1_000_000_000][text.suffix(1).uppercased()]
        guard let number = Int64(factor == nil ? text[...] : text.dropLast()),
            case (let size, let overflows) = number.multipliedReportingOverflow(by: factor ?? 1), !overflows,
            (1_000_000...1_000_000_000).contains(size)
        else { throw OptionError("'\(text)' is not a size from 1M to 1G") }
        return size
    }

    private static func profiles(_ text: String) throws(OptionError) -> [Profile] {
        var profiles: [Profile] = []
        for word in text.split(separator: ",") {
            guard let profile = Profile(word) else {
                throw OptionError("'\(word)' is not a version: use 3 to 8 or rfc")
            }
            profiles.append(profile)
        }
        return profiles
    }

    private static func seconds(_ text: String) throws(OptionError) -> Duration {
        guard let seconds = Double(text), seconds >= 0.1, seconds <= 600 else {
            throw OptionError("'\(text)' is not a number of seconds from 0.1 to 600")
        }
        return .milliseconds(Int64(seconds * 1000))
    }
}
