import FoundationEssentials
import Glibc
import SystemCalls

/// A SeaweedFS server on the loopback interface: an object storage with the interface of Amazon S3. It is ended with
/// SIGKILL when this object is released, because it needs 15 seconds after SIGTERM.
///
/// `scripts/install-seaweedfs` installs the program. It does not compare the content of an object with its signed digest.
package final class SeaweedFS: StorageEngine {
    /// The directory of the repository.
    private static let root = (0..<3).reduce(#filePath) { path, _ in
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    }
    private static let program = root + "/.build/seaweedfs/bin/weed"

    /// Whether the long tests that need the program run: those of `make test-scale`.
    package static let isRequired = ProcessInfo.processInfo.environment["ONWARD_SCALE"] == "1"

    /// Whether a server can be started. With `ONWARD_SCALE=1` a missing program is a failure.
    package static let isInstalled = isRequired || access(program, X_OK) == 0

    /// The reason why tests are skipped.
    package static let reason: String = "SeaweedFS is not installed: run scripts/install-seaweedfs"

    /// The URL of the interface of S3, and its port.
    package let endpoint: String
    package let port: UInt16
    /// The variables with the keys of the only user.
    package let environment = ["AWS_ACCESS_KEY_ID": "ACCESSKEY", "AWS_SECRET_ACCESS_KEY": "SECRETKEY"]
    private let directory: TemporaryDirectory
    private let process: ChildProcess
    private let filer: UInt16
    private let sockets: [String]
    private let buckets = Counter()

    /// Starts a server and waits until it responds.
    /// - Parameter certificate: the certificate of the interface of S3; `nil`: no TLS.
    package init(certificate: SelfSignedCertificate? = nil) throws {
        guard access(Self.program, X_OK) == 0 else { throw TestFailure(Self.reason) }
        directory = try TemporaryDirectory()
        let configuration = """
            {"identities": [{"name": "test", "actions": ["Admin", "Read", "Write", "List"],
              "credentials": [{"accessKey": "ACCESSKEY", "secretKey": "SECRETKEY"}]}]}
            """
        let identities = try directory.file("identities.json", Array(configuration.utf8))
        let names = ["master", "volume", "filer", "s3"]
        let ports = try names.map { _ in try (FixedPort.next(), FixedPort.next()) }
        filer = ports[2].0
        port = ports[3].0
        endpoint = (certificate == nil ? "http" : "https") + "://127.0.0.1:\(port)"
        sockets = zip(names, ports).flatMap { name, ports in
            ["/tmp/seaweedfs-\(name)-\(ports.0).sock", "/tmp/seaweedfs-\(name)-grpc-\(ports.1).sock"]
        }
        var arguments = ["server", "-dir=" + directory.path, "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
        for (name, ports) in zip(names, ports) {
            arguments += ["-\(name).port=\(ports.0)", "-\(name).port.grpc=\(ports.1)"]
        }
        arguments += [
            // Without this option the server would send statistics over the network.
            "-master.telemetry=false", "-volume.max=500", "-s3.config=" + identities,
            // Without this option the server would refuse objects while less than one percent of the disk is free.
            "-volume.minFreeSpace=64MiB",
            "-s3.iam=false", "-s3.domainName=localhost", "-s3.port.iceberg=0", "-s3.port.lance=0",
        ]
        if let certificate {
            arguments += ["-s3.cert.file=" + certificate.certificate, "-s3.key.file=" + certificate.key]
        }
        // Without this variable the server creates seven volumes for each bucket.
        process = try ChildProcess(Self.program, arguments, environment: ["WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"])
        for port in [filer, port] {
            let isReady: Bool? = try pollUntil(within: .seconds(60)) {
                if let ending = process.ending { throw TestFailure("\(ending): \(process.errorOutput)") }
                return ListeningSocket.isFree(port: port) ? nil : true
            }
            guard isReady == true else { throw TestFailure(process.errorOutput) }
        }
    }

    deinit { stop() }

    /// Ends the server as a power failure would.
    package func stop() {
        process.kill(SIGKILL)
        for socket in sockets { unlink(socket) }
    }

    package func newBucket() throws -> String { try newBucket(caFile: nil) }

    /// - Parameter caFile: the path of the certificate.
    package func newBucket(caFile: String?) throws -> String {
        let name = "bucket-\(buckets.next())"
        let created = try pollUntil(within: .seconds(60)) {
            let request = try ChildProcess(
                "/usr/bin/curl", ["-sf", "-X", "POST", "http://127.0.0.1:\(filer)/buckets/\(name)/"])
            return try request.awaitEnding() == .exited(0) ? true : nil
        }
        guard created == true else { throw TestFailure("no bucket can be created: \(process.errorOutput)") }
        return "s3://\(name)?endpoint=\(endpoint)" + (caFile.map { "&ca-file=" + $0 } ?? "")
    }

    /// Replaces the content of an object, or removes the object if the content is nil, as a program does that is not a
    /// client of the interface of S3.
    /// - Parameter bucket: the URI of the bucket.
    package func change(_ key: String, in bucket: String, to content: [UInt8]?) throws {
        let name = bucket.dropFirst("s3://".count).prefix { $0 != "?" && $0 != "/" }
        let url = "http://127.0.0.1:\(filer)/buckets/\(name)/\(key)"
        let action = try content.map { ["-T", try directory.file("content", $0)] } ?? ["-X", "DELETE"]
        let request = try ChildProcess("/usr/bin/curl", ["-sf"] + action + [url])
        let ending = try request.awaitEnding()
        guard ending == .exited(0) else { throw TestFailure("\(key) cannot be changed: \(ending)") }
    }

    /// Removes all objects below a bucket and a prefix.
    package func remove(_ place: String) throws {
        let request = try ChildProcess(
            "/usr/bin/curl",
            [
                "-sf", "-X", "DELETE",
                "http://127.0.0.1:\(filer)/buckets/\(place)?recursive=true&ignoreRecursiveError=true",
            ])
        _ = try request.awaitEnding()
    }

    /// The content of an object, by bucket and key.
    package func content(of place: String) throws -> [UInt8] {
        let directory = try TemporaryDirectory()
        let request = try ChildProcess(
            "/usr/bin/curl", ["-sf", "-o", directory.path + "/object", "http://127.0.0.1:\(filer)/buckets/\(place)"])
        guard try request.awaitEnding() == .exited(0),
            let content = FileManager.default.contents(atPath: directory.path + "/object")
        else { throw TestFailure("the object \(place) cannot be read") }
        return Array(content)
    }

    private static let started = Monitor<SeaweedFS?>(nil)

    /// A server that several tests use, until the process ends.
    package static func shared() throws -> SeaweedFS {
        try started.withLock { started in
            if let server = started { return server }
            let server = try SeaweedFS()
            atexit { SeaweedFS.started.withLock { $0?.stop() } }
            started = server
            return server
        }
    }
}
