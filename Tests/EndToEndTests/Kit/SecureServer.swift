import SystemCalls

/// `openssl s_server` with a certificate of its own, which answers every GET.
final class SecureServer: Sendable {
    let url: String
    /// Path of the certificate.
    let certificate: String
    private let directory: TemporaryDirectory
    private let process: ChildProcess

    init() throws {
        directory = try TemporaryDirectory()
        certificate = directory.path + "/certificate.pem"
        let key = directory.path + "/key.pem"
        let making = try ChildProcess(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
            ])
        guard try making.awaitEnding() == .exited(0) else { throw WireFailure.server(making.errorOutput) }
        // Free a moment ago; nobody else asks for this one.
        let listening = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        guard case .tcp(_, let port) = listening.address else { throw WireFailure.server("no port") }
        _ = FileDescriptor(owning: listening.release())
        process = try ChildProcess(
            "/usr/bin/openssl",
            ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", key, "-www", "-quiet"])
        url = "https://127.0.0.1:\(port)"
        let isReady = Deadline.poll(within: .seconds(10)) { try? LoopbackListener.connect(to: port) } != nil
        guard isReady else { throw WireFailure.server(process.errorOutput) }
    }
}
