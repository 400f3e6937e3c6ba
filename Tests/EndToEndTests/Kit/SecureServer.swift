import TestSupport

/// `openssl s_server` with its own certificate; it answers every GET.
final class SecureServer: Sendable {
    let url: String
    /// The path of the certificate.
    let certificate: String
    private let identity: SelfSignedCertificate
    private let process: ChildProcess

    /// - Parameter options: further options of `openssl s_server`.
    init(_ options: String...) throws {
        identity = try SelfSignedCertificate()
        certificate = identity.certificate
        let port = try FixedPort.next()
        process = try ChildProcess(
            "/usr/bin/openssl",
            ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", identity.key, "-www", "-quiet"]
                + options)
        url = "https://127.0.0.1:\(port)"
        let isReady = pollUntil(within: .seconds(60)) { try? LoopbackListener.connect(to: port) } != nil
        guard isReady else { throw TestFailure(process.errorOutput) }
    }
}
