import CommandLineInterface
import ConformanceKit
import Foundation

/// `onward-conformance matrix`.
enum MatrixCommand {
    static func run(_ arguments: [String]) -> Int32 {
        if arguments.contains("--help") || arguments.contains("-h") {
            Output.write(HelpText(page, of: "onward-conformance").text + "\n")
            return 0
        }
        guard !arguments.isEmpty else { return OnwardConformance.misused("matrix needs a report in JSON") }
        do {
            let subjects = try arguments.map { argument in
                let (name, path) = split(argument)
                return try MatrixSubject(Data(contentsOf: URL(fileURLWithPath: path)), name: name)
            }
            Output.write(try MarkdownMatrix(subjects).text)
            return 0
        } catch {
            Output.complain("\(error)")
            return 2
        }
    }

    /// `NAME=FILE`; a file that is there may have any name.
    private static func split(_ argument: String) -> (name: String?, path: String) {
        guard !FileManager.default.fileExists(atPath: argument), let sign = argument.lastIndex(of: "=") else {
            return (nil, argument)
        }
        return (String(argument[..<sign]), String(argument[argument.index(after: sign)...]))
    }
}
