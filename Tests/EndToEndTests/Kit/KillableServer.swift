import FoundationEssentials
import TestSupport

/// A server that is killed before one operation on a file of its data directory.
struct KillableServer {
    let server: ServerProcess
    private let directory: TemporaryDirectory
    private let settings: String
    private let log: String

    /// - Parameters:
    ///   - options: the options of `serve`.
    ///   - counted: the directory whose files count, in words of a shell script. The default is the data directory, which
    ///     does not have a name yet: it is the fourth word of the command line.
    ///   - number: the number of the operation after ``beginCounting()``; `nil`: the server is not killed.
    init(_ options: [String], below counted: String = "$4", killAt number: Int?) throws {
        directory = try TemporaryDirectory()
        settings = directory.path + "/settings"
        log = directory.path + "/operations"
        let starter = try directory.file(
            "start", Array("#!/bin/sh\n. \(directory.path)/settings\nexec env $preload \"$@\"\n".utf8))
        let operations = try FileOperations(below: counted, log: log)
        let words = operations.environment(killAt: number, after: directory.path + "/begun").map { "\($0)=\($1)" }
            .joined(separator: " ")
        _ = try directory.file("settings", Array("preload=\"\(words)\"\n".utf8))
        server = try ServerProcess(options, startedBy: ["/bin/sh", starter])
    }

    /// Counts the operations from now on.
    func beginCounting() throws { _ = try directory.file("begun", []) }

    /// The number of operations since ``beginCounting()``.
    var operations: Int {
        let text = FileManager.default.contents(atPath: log) ?? Data()
        return text.count { $0 == UInt8(ascii: "\n") }
    }

    /// Starts the server again. This time it is not killed.
    func restart() throws {
        _ = try directory.file("settings", Array("preload=\n".utf8))
        try server.restart()
    }
}
