import CommandLineInterface
import Testing

@Suite("Help")
struct HelpTextTests {
    @Test("The help of a command has its usage, its description, and its options by group")
    func command() {
        #expect(
            HelpText(Sample.program.commands[0], of: "sam-ple").text == """
                usage: sam-ple take [OPTIONS] FILE...

                First line.
                Second line.

                Group:
                  --flag                      help
                  -f, --file FILE             help
                  --dir DIR                   help
                  --color C                   help

                Other:
                  --free N                    help
                """)
    }

    @Test("The help of a program has a line for each command, and ends with the conclusion")
    func overview() {
        #expect(
            HelpText(overview: Sample.program).text == """
                usage: sam-ple take FILE...   take files
                       sam-ple go [NAME]      continue
                       sam-ple stop           end
                       sam-ple stop now
                       sam-ple help COMMAND   print the options of a command
                       sam-ple manual [FILE]  list the manual pages and completions, or print one
                       sam-ple version        print the version

                First line.
                Second line.

                  0   done
                  64  wrong
                      usage

                'sam-ple COMMAND --help' lists the options.
                """)
    }
}
