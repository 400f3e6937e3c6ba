import CommandLineInterface
import Testing

@testable import onward

@Suite("Manual and completions")
struct ManualTests {
    @Test("Each command and each of its options has a description and a completion")
    func everyCommand() throws {
        let bash = try Onward.manual.manual(["bash-completion/completions/onward"])
        let tables = [
            "put": ClientSettings.putOptions.map(\.name), "get": ClientSettings.getOptions.map(\.name),
            "resume": ClientSettings.resumeOptions.map(\.name), "status": ClientSettings.statusOptions.map(\.name),
            "cancel": ClientSettings.cancelOptions.map(\.name), "health": ClientSettings.healthOptions.map(\.name),
            "serve": ServeSettings.options.map(\.name), "check": CheckCommand.options.map(\.name),
            "outcomes": OutcomesCommand.options.map(\.name), "events": EventsCommand.options.map(\.name),
            "migrate": MigrateCommand.options.map(\.name),
        ]
        #expect(Set(tables.keys) == Set(Onward.commands.map(\.page.name)))
        #expect(Onward.commands.map(\.name) == Onward.commands.map(\.page.name))
        for (command, options) in tables {
            let page = try Onward.manual.manual(["man/man1/onward-\(command).1"])
            for option in options {
                #expect(page.contains("\\fB\\-\\-\(RoffPage.escaped(option))\\fR"), "\(command) --\(option)")
                #expect(bash.contains("--" + option), "\(command) --\(option)")
            }
        }
    }

    @Test("The text of an option of the client names only options that the same command has")
    func references() {
        for (command, options) in [
            ("put", ClientSettings.putOptions), ("get", ClientSettings.getOptions),
            ("resume", ClientSettings.resumeOptions), ("status", ClientSettings.statusOptions),
            ("cancel", ClientSettings.cancelOptions), ("health", ClientSettings.healthOptions),
        ] {
            let names = Set(options.map { "--" + $0.name })
            for option in options {
                for match in option.manual.help.matches(of: /--[a-z][a-z-]*/) {
                    #expect(names.contains(String(match.output)), "\(command) --\(option.name)")
                }
            }
        }
    }

    @Test("No line of the help is longer than a terminal of 100 columns")
    func width() {
        for text in Onward.commands.map({ HelpText($0.page, of: "onward").text }) + [
            HelpText(overview: Onward.manual).text
        ] {
            for line in text.split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
        }
    }

    @Test("Each word that the completion offers for an option is accepted")
    func words() throws {
        func check<Settings>(_ options: [CommandOption<Settings>], _ settings: Settings) {
            for option in options {
                guard case .words(let words) = option.manual.values else { continue }
                for word in words {
                    var settings = settings
                    #expect(throws: Never.self, "--\(option.name) \(word)") {
                        try option.set(CommandArgument(word), in: &settings)
                    }
                }
            }
        }
        check(ServeSettings.options, ServeSettings())
        check(ClientSettings.putOptions, ClientSettings())
        check(ClientSettings.getOptions, ClientSettings())
    }
}
