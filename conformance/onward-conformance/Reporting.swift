import CommandLineInterface

/// The options `--strict`, `--json`, `--junit` and `--html` of the commands `server` and `client`, and their values.
struct Reporting: Sendable {
    var strict = false
    var json: String?
    var junit: String?
    var html: String?

    static func options<Settings>(
        _ path: WritableKeyPath<Settings, Reporting> & Sendable
    ) -> [CommandOption<Settings>] {
        [
            CommandOption(flag: "strict", group: "Cases", "a SHOULD that is not met also fails the run") {
                $0[keyPath: path].strict = true
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
}
