import ConformanceKit
import FoundationEssentials
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// A directory in which an origin gets files, and a place to which the origin moves them.
final class PathHandover: Sendable {
    /// The group of the origin, and the user as which the tests run parts of the origin.
    static let group: UInt32 = 60_001
    /// Whether tests can run programs as other users.
    static let canChangeUser = geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0

    private let parent: TemporaryDirectory
    /// The directory of the route.
    let path: String
    /// A directory of the origin.
    let destination: String

    init(name: String = "incoming", group: UInt32 = group) throws {
        parent = try TemporaryDirectory()
        path = parent.path + "/" + name
        destination = parent.path + "/moved"
        // All users can reach the directories, as those of a service.
        #expect(chmod(parent.path, 0o711) == 0)
        try make(path, group: group)
        #expect(mkdir(destination, 0o700) == 0)
        if geteuid() == 0 { #expect(chown(destination, group, group) == 0) }
    }

    /// Creates a directory as in the documentation.
    func make(_ path: String, group: UInt32 = group) throws {
        guard mkdir(path, 0o700) == 0, geteuid() != 0 || chown(path, uid_t.max, group) == 0, chmod(path, 0o2710) == 0
        else { throw Errno.current }
    }

    /// The path of another entry beside the directory.
    func beside(_ name: String) -> String { parent.path + "/" + name }

    /// The names in the directory.
    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? ["unreadable"] }

    /// The files that the origin has moved away.
    var movedFiles: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: destination)) ?? []).sorted() }

    /// The path that a request contains, which has to be one of this directory.
    func file(of request: ReceivedRequest) throws -> String {
        let file = try #require(request.fields["Onward-Path"], "\(request.text)")
        let parts = file.split(separator: "/", omittingEmptySubsequences: false)
        #expect(file.hasPrefix(path + "/") && parts.last == "content", "\(file)")
        let key = parts.dropLast().last ?? ""
        #expect(key.utf8.count == 32 && key.allSatisfy(\.isHexDigit), "\(file)")
        return file
    }

    /// Moves the file of a request away, and returns its new path.
    @discardableResult
    func move(_ request: ReceivedRequest) throws -> String {
        let target = destination + "/\(movedFiles.count)"
        guard rename(try file(of: request), target) == 0 else { throw Errno.current }
        return target
    }

    /// The script of an origin that moves each file away and accepts the request.
    var moveAndAccept: ScriptedServer.Script {
        { [self] request, connection in
            try move(request)
            try GatewayUploadFixture.accept(request, connection)
        }
    }

    /// Runs `body` with a gateway whose route `/app` hands files over in this directory.
    func withGateway(
        to origin: ScriptedServer, _ settings: String..., options: [String] = [], _ body: (ServerProcess) throws -> Void
    ) throws {
        let route = (["/app=\(origin.url)", "access=open", "handover=\(path)"] + settings).joined(separator: ",")
        try withServer(options: ["--route", route] + options, body)
    }

    /// Expects that nothing remains of uploads that have ended.
    func expectNothingLeft(_ server: ServerProcess, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(names.isEmpty, "\(names)", sourceLocation: sourceLocation)
        #expect(Self.entries(server.root + "/uploads").isEmpty, sourceLocation: sourceLocation)
    }

    static func entries(_ path: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    }

    static func content(_ path: String) -> [UInt8]? { FileManager.default.contents(atPath: path).map { Array($0) } }

    static func status(_ path: String) -> (inode: UInt64, mode: UInt32, group: UInt32, links: Int)? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return (UInt64(status.st_ino), UInt32(status.st_mode) & 0o7777, UInt32(status.st_gid), Int(status.st_nlink))
    }

    /// Runs a command of a shell as another user, and returns whether it has succeeded.
    static func run(as user: UInt32, group: UInt32? = nil, _ command: String) throws -> Bool {
        let identity = ["--reuid", "\(user)", "--regid", "\(group ?? user)", "--clear-groups"]
        let process = try ChildProcess("/usr/bin/setpriv", identity + ["/bin/sh", "-c", command])
        return try process.awaitEnding() == .exited(0)
    }

    /// Expects the request for an upload: its metadata, and no content.
    /// - Parameter added: the fields that Onward adds to each request.
    static func expectRequest(
        _ request: ReceivedRequest?, length: Int, added: Set<String> = GatewayUploadFixture.added,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let request = try #require(request, "the origin got no request", sourceLocation: sourceLocation)
        let note = Comment(rawValue: request.text)
        #expect(request.fields.values("Content-Length") == ["0"], note, sourceLocation: sourceLocation)
        #expect(!request.fields.contains("Transfer-Encoding"), note, sourceLocation: sourceLocation)
        #expect(request.fields.values("Onward-Length") == ["\(length)"], note, sourceLocation: sourceLocation)
        #expect(request.fields.values("Onward-Path").count == 1, note, sourceLocation: sourceLocation)
        GatewayUploadFixture.expectFields(
            request, added: added.union(["onward-path", "onward-length"]),
            allowed: ["repr-digest", "onward-digest", "idempotency-key"], sourceLocation: sourceLocation)
    }
}
