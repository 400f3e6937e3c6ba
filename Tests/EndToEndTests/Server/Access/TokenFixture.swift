import ConformanceKit
import FoundationEssentials
import SystemCalls
import TestSupport
import Testing

/// A server that requires tokens, and its token file.
final class TokenFixture {
    private let directory: TemporaryDirectory
    let server: ServerProcess

    var path: String { directory.path + "/tokens" }

    convenience init(_ tokens: String, _ options: String...) throws { try self.init(tokens, options) }

    init(_ tokens: String, _ options: [String], startedBy starter: [String] = []) throws {
        directory = try TemporaryDirectory()
        try Self.write(tokens, to: directory.path + "/tokens")
        server = try ServerProcess(["--token-file", directory.path + "/tokens"] + options, startedBy: starter)
    }

    static func write(_ tokens: String, to path: String) throws {
        guard
            FileManager.default.createFile(
                atPath: path, contents: Data(tokens.utf8), attributes: [.posixPermissions: 0o600])
        else { throw Errno.current }
    }

    /// Replaces the token file, and waits until the server has read it or has reported an error.
    func reload(_ tokens: String) throws {
        try Self.write(tokens, to: path)
        try server.reload()
    }
}
