import ConformanceKit
import Foundation
import SystemCalls

/// `onward-conformance`: judges servers and clients of Resumable Uploads for HTTP.
@main
enum OnwardConformance {
    static func main() {
        ProcessControl.ignoreBrokenPipes()
        exit(run(Array(CommandLine.arguments.dropFirst())))
    }

    private static func run(_ arguments: [String]) -> Int32 {
        switch arguments.first {
        case "server":
            return ServerCommand.run(Array(arguments.dropFirst()))
        case "client":
            return ClientCommand.run(Array(arguments.dropFirst()))
        case "list":
            guard arguments.count == 1 else { return misused("list takes no arguments") }
            write(CaseListing().text)
            return 0
        case "help"?, "--help"?, "-h"?:
            write(usage)
            return 0
        case let word?:
            return misused("there is no command “\(word)”")
        case nil:
            return misused("a command is missing")
        }
    }

    static func misused(_ reason: String) -> Int32 {
        FileHandle.standardError.write(Data("onward-conformance: \(reason)\n\n\(usage)".utf8))
        return 2
    }

    static func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }

    static func save(_ document: Data, to path: String) throws { try document.write(to: URL(fileURLWithPath: path)) }

    static func save(_ report: some Judgement, strict: Bool, junit: String?, html: String?) throws {
        if let path = junit { try save(Data(JUnitReport(report, strict: strict).text.utf8), to: path) }
        if let path = html { try save(Data(HTMLReport(report, strict: strict).text.utf8), to: path) }
    }

    static let usage = """
        onward-conformance judges implementations of Resumable Uploads for HTTP.

        onward-conformance server [URL] [options]   judge the server that takes uploads at URL
          --start CMD        start the server with CMD, in which {port} and {root} are replaced, and also kill and
                             restart it; URL may contain {port} (http://127.0.0.1:{port}/files/)
          --method M         method of creations (POST)
          --header 'N: V'    field of every request, repeatable: credentials, for example
          --profile P,…      versions to judge by: 3 to 8, rfc (those that the server speaks; the latest one is the
                             base, on which all cases run)
          --only GLOB        only cases whose ID matches, such as '4.4/*', repeatable
          --strict           a SHOULD that is not met fails the run, too
          --timeout SECONDS  how long to wait for anything (5)
          --json FILE        the outcomes as JSON
          --junit FILE       the outcomes as JUnit XML, for continuous integration
          --html FILE        the outcomes as a page that needs nothing else
        {name} in URL is replaced by another name for every creation.

        onward-conformance client [options]         judge a client, by playing good and bad servers to it
          --command CMD      uploads {file} to {url}, in the shell
          --get-command CMD  downloads {url} to {file}; at least one of the two
                             {state} is a directory that lives as long as a scenario: what the command has to
                             remember from run to run belongs there. It ends with 0 where the transfer succeeded
          --runs-again-on N  exit status with which the command asks to be run again (75)
          --runs N           how often it is run in one scenario at most (3)
          --timeout SECONDS  how long it may run in one scenario (60)
          --jobs N           how many scenarios go on at once (4)
          --seed N           where the cuts at random places are (1)
          --only, --strict, --json, --junit and --html as above (14/* are the downloads)

        onward-conformance list                     all cases, and the requirements that each covers

        Exit status: 0 no MUST failed (--strict: no SHOULD), 1 one did, 2 it could not be judged.

        """
}
