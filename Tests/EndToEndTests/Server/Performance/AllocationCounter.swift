import FoundationEssentials
import TestSupport

/// Counts the allocations of a process, with the library that `scripts/bench` also uses.
struct AllocationCounter {
    private let directory: TemporaryDirectory
    private let library: PreloadedLibrary
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(5).joined(separator: "/")
        let path = root + "/scripts/benchmarks/allocations.c"
        guard let source = FileManager.default.contents(atPath: path) else { throw TestFailure("cannot read \(path)") }
        library = try PreloadedLibrary(String(decoding: source, as: UTF8.self), in: directory)
        file = try directory.file("count", [UInt8](repeating: 0, count: 8))
    }

    /// The environment of the process.
    var environment: [String: String] { ["LD_PRELOAD": library.path, "ALLOCATION_COUNT": file] }

    /// The number of allocations since the start of the process.
    func read() throws -> Int {
        guard let bytes = FileManager.default.contents(atPath: file), bytes.count == 8 else {
            throw TestFailure("cannot read \(file)")
        }
        return Int(bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
