import FoundationEssentials
import Glibc
import TestSupport

/// A shared library, compiled from C, that replaces functions of the C library in a process (ld.so(8)).
struct PreloadedLibrary {
    let path: String

    /// The path of the system's compiler; `nil` if there is none.
    static let compiler: String? = ["/usr/bin/cc", "/usr/bin/gcc", "/usr/bin/clang"].first {
        access($0, X_OK) == 0
    }

    /// - Parameter source: the text of a C file.
    init(_ source: String, in directory: TemporaryDirectory) throws {
        let file = directory.path + "/preloaded.c"
        path = directory.path + "/preloaded.so"
        guard FileManager.default.createFile(atPath: file, contents: Data(source.utf8)) else {
            throw TestFailure("cannot write \(file)")
        }
        guard let compiler = Self.compiler else { throw TestFailure("no C compiler") }
        let process = try ChildProcess(compiler, ["-shared", "-fPIC", "-O1", "-o", path, file, "-ldl"])
        guard try process.awaitEnding() == .exited(0) else { throw TestFailure(process.errorOutput) }
    }
}
