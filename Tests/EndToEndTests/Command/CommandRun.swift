import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A temporary home directory of a user, in which `onward` runs.
final class CommandHome: Sendable {
    let directory: TemporaryDirectory
    /// The network namespace in which commands run; `nil` for the namespace of this process.
    let networkNamespace: String?

    init(networkNamespace: String? = nil) throws {
        directory = try TemporaryDirectory()
        self.networkNamespace = networkNamespace
    }

    var path: String { directory.path }
    /// The directory of the state files.
    var states: String { path + "/state/onward" }

    /// The names of the state files, without the files of the library.
    var stateNames: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: states)) ?? []).filter { $0.hasSuffix(".state") }
            .sorted()
    }

    /// The names of the lists of the files that a command has sent.
    func lists() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: states).filter { $0.hasSuffix(".done") }
    }

    /// Writes a file and returns its path.
    func file(_ bytes: [UInt8], _ name: String = "big.bin") throws -> String {
        try Data(bytes).write(to: URL(filePath: path + "/" + name))
        return path + "/" + name
    }

    /// Starts a command in this home.
    func start(_ arguments: String..., environment: [String: String] = [:]) throws -> CommandRun {
        try start(arguments, environment: environment)
    }

    func start(_ arguments: [String], environment: [String: String] = [:]) throws -> CommandRun {
        try CommandRun(self, arguments, environment)
    }

    /// Runs a command to its end.
    func run(_ arguments: String...) throws -> CommandRun { try run(arguments) }

    /// Starts a command whose arguments need not be UTF-8.
    func start(bytes words: [FilePath]) throws -> CommandRun { try CommandRun(self, words) }

    /// Runs a command whose arguments need not be UTF-8, to its end.
    func run(bytes words: FilePath...) throws -> CommandRun {
        let run = try start(bytes: words)
        _ = try run.process.awaitEnding(within: .seconds(60))
        return run
    }

    func run(_ arguments: [String]) throws -> CommandRun {
        let run = try start(arguments)
        _ = try run.process.awaitEnding(within: .seconds(60))
        return run
    }
}

/// One run of `onward`.
final class CommandRun: Sendable {
    let process: ChildProcess
    private let home: CommandHome
    private let outputPath: String

    /// A shell builds the arguments from bytes, because Foundation accepts only strings as arguments of a process.
    fileprivate convenience init(_ home: CommandHome, _ words: [FilePath]) throws {
        // `$(...)` removes line feeds at the end of a word, so a "." is added there and removed afterward.
        let script = words.enumerated().map { index, word in
            let octal = word.bytes.map { byte in
                let digits = String(byte, radix: 8)
                return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
            }
            return "w\(index)=$(printf '\(octal.joined()).'); w\(index)=${w\(index)%.}\n"
        }
        let names = words.indices.map { "\"$w\($0)\"" }.joined(separator: " ")
        try self.init(home, script: "LC_ALL=C\n\(script.joined())exec \"$0\" \(names) > \"$OUTPUT\"", [], [:])
    }

    fileprivate convenience init(
        _ home: CommandHome, _ arguments: [String], _ environment: [String: String]
    ) throws {
        let prefix = home.networkNamespace.map { "ip netns exec \($0) " } ?? ""
        try self.init(home, script: "exec \(prefix)\"$0\" \"$@\" > \"$OUTPUT\"", arguments, environment)
    }

    private init(
        _ home: CommandHome, script: String, _ arguments: [String], _ environment: [String: String]
    ) throws {
        self.home = home
        outputPath = home.path + "/output-" + UUID().uuidString
        var variables = ["HOME": home.path, "XDG_STATE_HOME": home.path + "/state", "OUTPUT": outputPath]
        variables.merge(environment) { $1 }
        process = try ChildProcess(
            "/bin/sh", ["-c", script, try ExecutableLocation.onward()] + arguments, environment: variables)
    }

    var ending: ChildProcess.Ending? { process.ending }
    /// Standard error.
    var errors: String { process.errorOutput }
    /// Standard output.
    var output: String {
        FileManager.default.contents(atPath: outputPath).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Waits for the end of the command, and records an issue unless it ends with this status.
    func expect(_ status: Int32, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let ending = try process.awaitEnding(within: .seconds(60))
        #expect(ending == .exited(status), "\(errors)\n\(output)", sourceLocation: sourceLocation)
    }

    /// The JSON objects on standard output; every line must be such an object.
    func objects(sourceLocation: SourceLocation = #_sourceLocation) throws -> [Event] {
        try output.split(separator: "\n").map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return Event(try #require(object, "\(line)", sourceLocation: sourceLocation))
        }
    }

    /// The files in the events `completed`, relative to a folder: sorted, with a mark for those that were unchanged.
    func completed(below root: String) throws -> [String] {
        try objects().filter { $0.name == "completed" }.map { event in
            let path = (event.text("file") ?? "").replacing(root + "/", with: "")
            return event.members["unchanged"] as? Bool == true ? path + " unchanged" : path
        }.sorted()
    }

    /// Waits for an object of this event that satisfies the condition, and returns the last such object.
    func awaitEvent(_ name: String, where condition: (Event) -> Bool = { _ in true }) throws -> Event {
        let found = try pollUntil(within: .seconds(60)) { () -> Event? in
            // The last line may be incomplete.
            let lines = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            let objects = try lines.map { line in
                Event(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:])
            }
            return objects.last { $0.name == name && condition($0) }
        }
        return try #require(found, "\(errors)\n\(output)")
    }

    /// One JSON object.
    struct Event {
        let members: [String: Any]

        init(_ members: [String: Any]) { self.members = members }

        var name: String { text("event") ?? "" }

        func text(_ name: String) -> String? { members[name] as? String }
        func number(_ name: String) -> Int64? { (members[name] as? NSNumber)?.int64Value }
        func isNull(_ name: String) -> Bool { members[name] is NSNull }
    }
}
