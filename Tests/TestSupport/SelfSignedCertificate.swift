import SystemCalls

/// A self-signed certificate for 127.0.0.1 and its key, made by openssl.
package final class SelfSignedCertificate: Sendable {
    /// Paths of the files, in PEM.
    package let certificate: String
    package let key: String
    private let directory: TemporaryDirectory

    package enum Algorithm: String, CaseIterable, Sendable {
        case rsa, ecdsa

        fileprivate var options: [String] {
            switch self {
            case .rsa: ["-newkey", "rsa:2048"]
            case .ecdsa: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            }
        }
    }

    package init(_ algorithm: Algorithm = .rsa, days: Int = 2) throws {
        directory = try TemporaryDirectory()
        certificate = directory.path + "/certificate.pem"
        key = directory.path + "/key.pem"
        let making = try ChildProcess(
            "/usr/bin/openssl",
            ["req", "-x509"] + algorithm.options + [
                "-nodes", "-days", "\(days)", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
            ])
        guard try making.awaitEnding() == .exited(0) else { throw TestFailure(making.errorOutput) }
    }
}
