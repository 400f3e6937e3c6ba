import CommandLineInterface
import ConformanceKit
import Foundation
import SystemCalls

/// `onward-conformance matrix`.
enum MatrixCommand {
    /// A file with a report, and the heading of its column.
    private struct Source {
        let name: String?
        let path: String
    }

    static func run(_ arguments: [String]) -> Int32 {
        OnwardConformance.perform(page, arguments, parse: sources, verify: compare)
    }

    private static func sources(_ arguments: [String]) throws(OptionError) -> [Source] {
        if arguments.isEmpty { throw OptionError("a report in JSON is missing") }
        var sources: [Source] = []
        for argument in arguments { sources.append(try source(argument)) }
        return sources
    }

    private static func compare(_ sources: [Source]) throws -> Int32 {
        let subjects = try sources.map { source in
            try MatrixSubject(content(of: source.path), from: source.path, name: source.name)
        }
        Output.write(try MarkdownMatrix(subjects).text)
        return 0
    }

    private static func content(of path: String) throws(FileFailure) -> Data {
        do {
            let file = try FileDescriptor.open(path, [.readOnly])
            if try file.status().isDirectory { throw Errno.isDirectory }
            return try FileHandle(fileDescriptor: file.rawValue).readToEnd() ?? Data()
        } catch {
            throw FileFailure("\(path) cannot be read: \(error as? Errno ?? .inputOutput)")
        }
    }

    /// Splits `NAME=FILE`. An argument that is the name of an existing file is not split.
    private static func source(_ argument: String) throws(OptionError) -> Source {
        guard !FileManager.default.fileExists(atPath: argument), let sign = argument.lastIndex(of: "=") else {
            return Source(name: nil, path: argument)
        }
        let (name, path) = (argument[..<sign], argument[argument.index(after: sign)...])
        guard !name.isEmpty, !path.isEmpty else {
            throw OptionError("'\(argument)' is not of the form NAME=FILE")
        }
        return Source(name: String(name), path: String(path))
    }
}
