import SystemCalls

/// A certificate for 127.0.0.1 that vouches for itself, and its key, made by openssl.
final class SelfSignedCertificate: Sendable {
    /// Paths of the files, in PEM.
    let certificate: String
    let key: String
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        certificate = directory.path + "/certificate.pem"
        key = directory.path + "/key.pem"
        let making = try ChildProcess(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
            ])
        guard try making.awaitEnding() == .exited(0) else { throw WireFailure.server(making.errorOutput) }
    }
}
