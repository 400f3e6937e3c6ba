import CommandLineInterface

/// The settings of `onward check`, and its options.
struct CheckSettings {
    var root = "./onward-data"
    var readsFiles = false
    var isJSON = false

    static let options: [CommandOption<CheckSettings>] = [
        CommandOption("root", "DIR", group: "Options", "data directory (./onward-data)") {
            settings, value throws(OptionError) in
            guard !value.isEmpty else { throw OptionError("the directory's name is empty") }
            settings.root = value
        },
        CommandOption(
            flag: "digests", group: "Options",
            "print the SHA-256 of every published file in the format of\nsha256sum, to compare it with that of a copy"
        ) { $0.readsFiles = true },
        CommandOption(flag: "json", group: "Options", "print one JSON object on each line") { $0.isJSON = true },
    ]
}
