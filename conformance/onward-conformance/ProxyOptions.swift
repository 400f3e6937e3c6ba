import CommandLineInterface
import ConformanceKit
import TLS

/// The options of `onward-conformance proxy`, and their values.
struct ProxyOptions: Sendable {
    var settings = ProxySettings(url: "")
    var json: String?
    var shouldShowTranscripts = false

    static let table: [CommandOption<ProxyOptions>] = [
        CommandOption(
            "upstream-port", "N", group: "Proxy",
            "port to which the proxy forwards: this command listens on it.\nWithout this option the proxy is tested together with the server\nbehind it"
        ) { options, value throws(OptionError) in
            guard let port = UInt16(value), port > 0 else { throw OptionError("'\(value)' is not a port") }
            options.settings.upstreamPort = port
        },
        CommandOption(
            "upstream-address", "ADDRESS", group: "Proxy", "address on which this command listens [default: 127.0.0.1]"
        ) {
            options, value throws(OptionError) in options.settings.upstreamAddress = value
        },
        CommandOption(
            "method", "M", group: "Proxy", values: .words(["POST", "PUT"]),
            "method of the requests that create an upload [default: POST]"
        ) { options, value throws(OptionError) in options.settings.method = try ConnectionValues.method(value) },
        CommandOption(
            "header", "'N: V'", group: "Proxy", repeatable: true,
            "field of every request, for example credentials; repeatable"
        ) { options, value throws(OptionError) in options.settings.fields.append(try ConnectionValues.field(value)) },
        CommandOption(
            "cacert", "FILE", group: "Proxy", "PEM certificates to trust instead of the system's"
        ) { options, value throws(OptionError) in options.settings.trust = try ConnectionValues.trust(value) },
        CommandOption(flag: "insecure", group: "Proxy", "accept any certificate") {
            $0.settings.trust = .anyCertificate
        },
        CommandOption(
            "timeout", "SECONDS", group: "Proxy",
            "time to wait for a message before the report states that the\nproxy delays it [default: 2]"
        ) { options, value throws(OptionError) in
            guard let seconds = Double(value), (0.1...60).contains(seconds) else {
                throw OptionError("'\(value)' is not a number of seconds from 0.1 to 60")
            }
            options.settings.timeout = .milliseconds(Int64(seconds * 1000))
        },

        CommandOption(
            flag: "verbose", group: "Reports", "print the transmitted bytes of each check that failed"
        ) {
            $0.shouldShowTranscripts = true
        },
        CommandOption("json", "FILE", group: "Reports", "write the report as JSON to FILE") {
            options, value throws(OptionError) in options.json = value
        },
    ]

    /// - Throws: a description of the error in the command line.
    static func parse(_ arguments: [String]) throws(OptionError) -> ProxyOptions {
        var options = ProxyOptions()
        let operands = try OptionParser(options: table).operands(of: arguments, into: &options)
        guard operands.count <= 1 else { throw OptionError("only one URL is allowed") }
        guard let url = operands.first else { throw OptionError("the URL of the proxy is missing") }
        options.settings.url = url
        return options
    }
}
