import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A server with TLS, and curl as its client.
final class TLSFixture {
    private let directory: TemporaryDirectory
    private let identity: SelfSignedCertificate
    let server: ServerProcess

    var certificate: String { directory.path + "/cert.pem" }
    var url: String { "https://127.0.0.1:\(server.port)" }

    init(_ options: String..., identity: SelfSignedCertificate? = nil) throws {
        directory = try TemporaryDirectory()
        self.identity = try identity ?? SelfSignedCertificate()
        let identity = self.identity
        try Self.install(identity, in: directory.path)
        server = try ServerProcess(
            ["--tls-cert", directory.path + "/cert.pem", "--tls-key", directory.path + "/key.pem"] + options)
    }

    private static func install(_ identity: SelfSignedCertificate, in directory: String) throws {
        for (from, to) in [(identity.certificate, "cert.pem"), (identity.key, "key.pem")] {
            let data = try #require(FileManager.default.contents(atPath: from))
            let path = directory + "/" + to
            guard FileManager.default.createFile(atPath: path, contents: data, attributes: [.posixPermissions: 0o600])
            else { throw Errno.current }
        }
    }

    /// Replaces the certificate.
    func install(_ identity: SelfSignedCertificate) throws { try Self.install(identity, in: directory.path) }

    func corruptKey() throws {
        guard FileManager.default.createFile(atPath: directory.path + "/key.pem", contents: Data("no key".utf8))
        else { throw Errno.current }
    }

    func path(_ name: String) -> String { directory.path + "/" + name }

    func write(_ bytes: [UInt8], as name: String) throws -> String {
        guard FileManager.default.createFile(atPath: path(name), contents: Data(bytes)) else {
            throw Errno.current
        }
        return path(name)
    }

    /// Starts curl; all its output is in the error output of the process.
    func curl(
        _ arguments: [String], trusting certificate: String? = nil
    ) throws -> ChildProcess {
        try ChildProcess(
            "/bin/sh",
            [
                "-c", "exec curl \"$@\" 1>&2", "curl", "-sS", "-m", "60", "--cacert",
                certificate ?? identity.certificate,
            ]
                + arguments)
    }

    /// Runs curl to its end.
    func run(_ arguments: String..., trusting certificate: String? = nil) throws -> (
        ending: ChildProcess.Ending, output: String
    ) {
        let process = try curl(arguments, trusting: certificate)
        let ending = try process.awaitEnding(within: .seconds(90))
        return (ending, process.errorOutput)
    }
}
