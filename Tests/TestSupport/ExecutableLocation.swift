import FoundationEssentials
import Glibc

/// The paths of the built executables. They are in the directory of the test bundle, unless the environment variable
/// `ONWARD_EXECUTABLE` contains another path.
package enum ExecutableLocation {
    /// `ONWARD_EXECUTABLE`, or `onward` beside the running test bundle, or `onward` of a debug build of this package.
    package static func onward() throws -> String {
        var candidates: [String] = []
        if let named = ProcessInfo.processInfo.environment["ONWARD_EXECUTABLE"] {
            candidates = [named]
        } else {
            let bundle = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            candidates = ([bundle, CommandLine.arguments.first].compactMap { $0 }).map { directory(of: $0) + "/onward" }
            candidates.append(up(3, from: #filePath) + "/.build/debug/onward")
        }
        guard let found = candidates.first(where: { access($0, X_OK) == 0 }) else {
            throw TestFailure("no executable at \(candidates); build it, or set ONWARD_EXECUTABLE")
        }
        return found
    }

    /// The path of a program of the tests in the directory of `onward`.
    package static func beside(_ name: String) throws -> String {
        let path = directory(of: try onward()) + "/" + name
        guard access(path, X_OK) == 0 else { throw TestFailure("no executable at \(path); build it") }
        return path
    }

    private static func directory(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    }

    private static func up(_ levels: Int, from path: String) -> String {
        (0..<levels).reduce(path) { path, _ in directory(of: path) }
    }
}
