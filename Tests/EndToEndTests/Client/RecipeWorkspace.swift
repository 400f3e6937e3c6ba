import Foundation
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport

/// The directories of one transfer through all runs of `TransferRecipes`.
struct RecipeWorkspace {
    static let bytes = Payload.bytes(1_000_000)

    let directory: TemporaryDirectory
    /// `upload` or `download`.
    let kind: String
    let url: String
    /// The name of a recipe begins with it.
    private let prefix: String
    var file: String { directory.path + "/file.bin" }

    /// - Parameter usesStore: whether the recipe is that of a ``TransferStore``.
    init(_ kind: String, _ url: String, usesStore: Bool = false) throws {
        directory = try TemporaryDirectory()
        self.kind = kind
        self.url = url
        prefix = usesStore ? "store-" : ""
        if kind == "upload" { try Data(Self.bytes).write(to: URL(filePath: file)) }
    }

    var hasSaved: Bool { access(directory.path + "/saved", F_OK) == 0 }

    /// The time at which the recipe last saved its data.
    var savedAt: FileStatus.Time? { try? FilePath(directory.path + "/saved").status().modified }

    /// The names in a directory; empty if it does not exist.
    func names(_ folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.path + "/" + folder)) ?? []
    }

    /// - Parameter point: the point at which the recipe kills itself.
    func start(killAt point: Int? = nil, isPaused: Bool = false) throws -> ChildProcess {
        try ChildProcess(
            try ExecutableLocation.beside("TransferRecipes"),
            [prefix + kind, directory.path, file, url] + (isPaused ? ["pause"] : []),
            environment: point.map { ["ONWARD_KILL_AT": "\($0)"] } ?? [:])
    }

    /// Runs the recipe to its end.
    /// - Returns: how it ended, and its standard error.
    func run(killAt point: Int? = nil, isPaused: Bool = false) throws -> (ChildProcess.Ending, String) {
        let process = try start(killAt: point, isPaused: isPaused)
        return (try process.awaitEnding(), process.errorOutput)
    }
}
