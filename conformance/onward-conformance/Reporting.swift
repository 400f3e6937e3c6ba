import CommandLineInterface

/// What a run makes of its outcomes besides what the terminal shows, and the options that say so.
struct Reporting: Sendable {
    var strict = false
    var json: String?
    var junit: String?
    var html: String?

    static func options<Settings>(
        _ path: WritableKeyPath<Settings, Reporting> & Sendable
    ) -> [CommandOption<Settings>] {
        [
            CommandOption(flag: "strict", group: "Cases", "a SHOULD that is not met fails the run, too") {
                $0[keyPath: path].strict = true
            },
            CommandOption("json", "FILE", group: "Reports", "the outcomes as JSON") {
                settings, value throws(OptionError) in settings[keyPath: path].json = value
            },
            CommandOption("junit", "FILE", group: "Reports", "the outcomes as JUnit XML, for continuous integration") {
                settings, value throws(OptionError) in settings[keyPath: path].junit = value
            },
            CommandOption("html", "FILE", group: "Reports", "the outcomes as a page that needs nothing else") {
                settings, value throws(OptionError) in settings[keyPath: path].html = value
            },
        ]
    }
}
