import FoundationEssentials
import Glibc
import SystemCalls

/// The operations with which a program changes the files below one directory, over all of its threads. The program can
/// be killed before any of them. See Tests/FileOperations/file-operations.c, which is loaded into the program.
package struct FileOperations: Sendable {
    /// One operation.
    package struct Operation: Sendable, Hashable {
        /// The kind of the operation: `create`, `mkdir`, `write`, `half` (half of a write is done), `truncate`,
        /// `allocate`, `sync`, `chmod`, `times`, `rename`, `link` or `unlink`.
        package let name: String
        /// The path, relative to the directory.
        package let path: String
        /// The new path of `rename` and `link`.
        package let newPath: String?
    }

    /// The absolute path of the directory, without symbolic links.
    package let directory: String
    /// The path of the file that lists the operations.
    package let log: String
    private let library: String

    /// - Throws: if no compiler for C is in the PATH.
    package init(below directory: String, log: String) throws {
        guard let library = Self.library else { throw TestFailure("file-operations.c cannot be compiled") }
        self.directory = directory
        self.log = log
        self.library = library
    }

    /// Whether there is a compiler.
    package static var isPossible: Bool { library != nil }

    /// The environment of a program that is observed.
    /// - Parameters:
    ///   - number: the program is killed before the operation with this number, which are counted from 1.
    ///   - file: the path of a file; operations count only while it exists.
    package func environment(killAt number: Int? = nil, after file: String? = nil) -> [String: String] {
        var environment = [
            "LD_PRELOAD": library, "FILE_OPERATIONS_BELOW": directory, "FILE_OPERATIONS_LOG": log,
            "FILE_OPERATIONS_KILL_AT": "\(number ?? 0)",
        ]
        environment["FILE_OPERATIONS_AFTER"] = file
        return environment
    }

    /// All operations so far, in order. After a kill, the last one was not performed.
    package func operations() -> [Operation] {
        let text = FileManager.default.contents(atPath: log).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return text.split(separator: "\n").map { line in
            // The paths of tests have no spaces.
            let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
            return Operation(name: words[0], path: words[1], newPath: words.count > 2 ? words[2] : nil)
        }
    }

    /// The path of the compiled library, beside the built programs.
    private static let library: String? = {
        let source =
            #filePath.split(separator: "/").dropLast(2).map { "/" + $0 }.joined()
            + "/FileOperations/file-operations.c"
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let compilers = path.split(separator: ":").flatMap { folder in
            ["clang", "cc", "gcc"].map { "\(folder)/\($0)" }
        }
        guard let compiler = compilers.first(where: { access($0, X_OK) == 0 }),
            let library = try? ExecutableLocation.onward().dropLast("onward".count) + "libfile-operations.so"
        else { return nil }
        // Another process may use the old library.
        let new = "\(library).\(getpid())"
        let run = try? ChildProcess(
            compiler, ["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", new, source],
            environment: ["PATH": path])
        guard (try? run?.awaitEnding(within: .seconds(60))) == .exited(0), rename(new, String(library)) == 0 else {
            return nil
        }
        return String(library)
    }()
}
