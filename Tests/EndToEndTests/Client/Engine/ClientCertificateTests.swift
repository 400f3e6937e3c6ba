import Foundation
import HTTPSemantics
import ResumableTransfer
import TestSupport
import Testing

@Suite("Client: client certificates", .blocking)
struct ClientCertificateTests {
    private let identity: SelfSignedCertificate
    private let directory: TemporaryDirectory
    /// The key of `identity`, encrypted with the password `verboten`.
    private let encryptedKey: String

    init() throws {
        identity = try SelfSignedCertificate(.ecdsa)
        directory = try TemporaryDirectory()
        encryptedKey = directory.path + "/encrypted.pem"
        let encryption = try ChildProcess(
            "/usr/bin/openssl",
            ["pkey", "-in", identity.key, "-aes256", "-passout", "pass:verboten", "-out", encryptedKey])
        guard try encryption.awaitEnding() == .exited(0) else { throw TestFailure(encryption.errorOutput) }
    }

    /// A server that requires a certificate, which must be `identity`.
    private func server(_ version: String) throws -> SecureServer {
        try SecureServer("-Verify", "1", "-verify_return_error", "-CAfile", identity.certificate, version)
    }

    private func failure(_ server: SecureServer, _ certificate: ClientCertificate?) async throws -> TransferError? {
        let fixture = try UploadFixture {
            $0.caFile = server.certificate
            $0.clientCertificate = certificate
            // If the client detects the close of the connection before the alert of the server, the failure is an
            // interruption.
            $0.retry.maxRetriesWithoutProgress = 20
        }
        do {
            let (data, _) = try await fixture.client.data(for: TransferRequest(server.url + "/"), maxSize: 1 << 20)
            #expect(!data.isEmpty)
            return nil
        } catch {
            return error as? TransferError
        }
    }

    @Test(
        "the client sends its certificate to a server that requires one; the key may be encrypted",
        arguments: ["-tls1_2", "-tls1_3"])
    func required(version: String) async throws {
        let server = try server(version)
        let certificate = ClientCertificate(certificateFile: identity.certificate, keyFile: identity.key)
        #expect(try await failure(server, certificate) == nil)
        let encrypted = ClientCertificate(
            certificateFile: identity.certificate, keyFile: encryptedKey, password: "verboten")
        #expect(try await failure(server, encrypted) == nil)
        let both = try directory.file(
            "both.pem",
            try Data(contentsOf: URL(filePath: identity.certificate)) + Data(contentsOf: URL(filePath: identity.key)))
        #expect(try await failure(server, ClientCertificate(certificateFile: both)) == nil)
    }

    @Test(
        "without a usable certificate the transfer fails with insecureConnection and is not tried again",
        arguments: ["-tls1_2", "-tls1_3"])
    func unusable(version: String) async throws {
        let server = try server(version)
        let other = try SelfSignedCertificate()
        let certificates = [
            nil, ClientCertificate(certificateFile: other.certificate, keyFile: other.key),
            ClientCertificate(certificateFile: identity.certificate, keyFile: encryptedKey, password: "geheim"),
            ClientCertificate(certificateFile: identity.certificate, keyFile: encryptedKey),
            ClientCertificate(certificateFile: identity.certificate, keyFile: other.key),
            ClientCertificate(certificateFile: "/nowhere"),
        ]
        for certificate in certificates {
            let error = try await failure(server, certificate)
            #expect(
                error?.code == .insecureConnection, "\(String(describing: certificate)): \(String(describing: error))")
            #expect(error.map { !"\($0)".contains("verboten") && !"\($0)".contains("geheim") } == true)
        }
    }

    @Test("the certificate is not sent to another origin after a redirection")
    func otherOrigin() async throws {
        let server = try server("-tls1_3")
        let first = try ScriptedServer { _, reply in try reply.respond(307, ["Location": server.url + "/"]) }
        let fixture = try UploadFixture {
            $0.caFile = server.certificate
            $0.clientCertificate = ClientCertificate(certificateFile: identity.certificate, keyFile: identity.key)
            $0.retry.maxRetriesWithoutProgress = 20
        }
        let error = await (try fixture.download(first.url + "/a")).failure()
        #expect(error?.code == .insecureConnection, "\(String(describing: error))")
    }

    @Test("no description of a certificate contains its password")
    func description() {
        let certificate = ClientCertificate(certificateFile: "/a", keyFile: "/b", password: "secret")
        var text = "\(certificate)"
        dump(certificate, to: &text)
        var configuration = TransferClient.Configuration()
        configuration.clientCertificate = certificate
        dump(configuration, to: &text)
        #expect(!text.contains("secret") && text.contains("/a"))
    }
}
