import ConformanceKit
import ResumableUpload
import SystemCalls
import TestSupport
import Testing
import TransferServer
import UploadStorage

/// A server in this process, as in a program that embeds it: files below `/files`, and the targets of the test.
final class EmbeddedServer {
    let directory: TemporaryDirectory
    let store: UploadStore
    let server: Server
    let port: UInt16

    init(
        limits: UploadLimits = UploadLimits(maxAge: 604_800), isAnnouncedWithoutVersion: Bool = false,
        drainTimeout: Duration = .seconds(30), processingWait: Duration = .seconds(5), store: UploadStore? = nil,
        targets: [(prefix: String, handler: any TargetHandler)]
    ) throws {
        directory = try TemporaryDirectory()
        self.store =
            try store
            ?? UploadStore.open(
                root: directory.path + "/data",
                configuration: StoreConfiguration(minFree: 0, processingWait: processingWait))
        // The port is fixed, because tests start another server with the same address.
        let configuration = try ServerConfiguration(
            listeners: [.tcp(host: "127.0.0.1", port: FixedPort.next())], limits: limits,
            isAnnouncedWithoutVersion: isAnnouncedWithoutVersion, drainTimeout: drainTimeout, logLevel: .error)
        server = Server(
            configuration: configuration, store: self.store,
            handlers: [("files", FilesHandler(store: self.store))] + targets)
        try server.startBlocking()
        guard case .tcp(_, let port)? = server.addresses.first else { throw TestFailure("no address") }
        self.port = port
    }

    deinit {
        server.stopBlocking()
        store.close()
    }

    func connect() throws -> RawConnection { try RawConnection(port: port) }

    /// Sends one request on a new connection.
    func exchange(_ request: Request, within limit: Duration = .seconds(60)) throws -> Response {
        let connection = try connect()
        return try connection.exchange(request, within: limit)
    }

    /// Creates an upload with a part of its content, and returns its location.
    func begin(
        _ version: Interop, _ method: String, _ target: String, _ content: [UInt8], _ fields: [(String, String)] = []
    ) throws -> String {
        var creation = Request.creation(version, method, target, complete: false, .bytes(content))
        creation.fields += fields
        let response = try exchange(creation)
        try #require(response.status == 201, "\(response)")
        return try #require(response.location)
    }

    /// Creates an upload to `/inbox/doc` with version 8 and `POST`, and returns its location.
    func begin(_ content: [UInt8]) throws -> String { try begin(.v8, "POST", "/inbox/doc", content) }
}

/// Runs `body` with a server in this process whose target below `/inbox` is `target`.
func withTarget(
    _ target: RecordingTarget, limits: UploadLimits = UploadLimits(maxAge: 604_800),
    _ body: (EmbeddedServer) throws -> Void
) throws {
    let host = try EmbeddedServer(limits: limits, targets: [("inbox", target)])
    // A target that is held would keep the server from stopping.
    defer { target.release() }
    try body(host)
}
