import CommandLineInterface
import ConformanceKit
import Foundation

/// `onward-conformance matrix`.
enum MatrixCommand {
    static func run(_ arguments: [String]) -> Int32 {
        OnwardConformance.perform(page, arguments, parse: reports, verify: compare)
    }

    private static func reports(_ arguments: [String]) throws(OptionError) -> [String] {
        if arguments.isEmpty { throw OptionError("matrix needs a report in JSON") }
        return arguments
    }

    private static func compare(_ arguments: [String]) throws -> Int32 {
        let subjects = try arguments.map { argument in
            let (name, path) = split(argument)
            return try MatrixSubject(Data(contentsOf: URL(fileURLWithPath: path)), name: name)
        }
        Output.write(try MarkdownMatrix(subjects).text)
        return 0
    }

    /// Splits `NAME=FILE`. An argument that is the name of an existing file is not split.
    private static func split(_ argument: String) -> (name: String?, path: String) {
        guard !FileManager.default.fileExists(atPath: argument), let sign = argument.lastIndex(of: "=") else {
            return (nil, argument)
        }
        return (String(argument[..<sign]), String(argument[argument.index(after: sign)...]))
    }
}
