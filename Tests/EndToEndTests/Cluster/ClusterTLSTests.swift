import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite(
    "Several servers that use TLS to the database and to the object storage", .blocking,
    .enabled(if: PostgreSQLCluster.isRequired && SeaweedFS.isRequired, "takes long: make test-scale runs it"))
struct ClusterTLSTests {
    private static let content = BytePool.repeated(0..<20_000_000)

    private let directory: TemporaryDirectory
    private let certificate: SelfSignedCertificate
    private let database: PostgreSQLCluster
    private let storage: SeaweedFS
    private let bucket: String

    init() throws {
        directory = try TemporaryDirectory()
        certificate = try SelfSignedCertificate()
        // The database accepts no connection without TLS over TCP.
        let access = try directory.file("hba", "local all all trust\nhostssl all all 127.0.0.1/32 trust\n".utf8)
        database = try PostgreSQLCluster(
            settings: ["ssl": "on", "ssl_cert_file": "own.crt", "ssl_key_file": "own.key"],
            files: ["own.crt": certificate.certificate, "own.key": certificate.key, "pg_hba.conf": access])
        storage = try SeaweedFS(certificate: certificate)
        bucket = try storage.newBucket(caFile: certificate.certificate)
    }

    /// Starts a server that trusts these certificates.
    private func start(database root: SelfSignedCertificate, storage ca: SelfSignedCertificate) throws -> ServerProcess
    {
        try ServerProcess(
            environment: storage.environment,
            storage: [
                "--catalog",
                "postgresql://postgres@127.0.0.1:\(database.port)/postgres?sslmode=verify-full&sslrootcert="
                    + root.certificate,
                "--blobs", bucket.replacing(certificate.certificate, with: ca.certificate),
            ])
    }

    @Test("an upload continues at another server; both verify the certificates of the database and of the storage")
    func resume() throws {
        let nodes = try (0..<2).map { _ in try start(database: certificate, storage: certificate) }
        for node in nodes { try node.awaitReadiness() }
        #expect(nodes[0].storage[3].contains("endpoint=https://"))
        let location = try nodes[0].begin(
            .v8, "/files/t", Array(Self.content[..<12_000_000]), length: Self.content.count)
        let response = try nodes[1].exchange(
            .append(.v8, location, at: 12_000_000, complete: true, .bytes(Array(Self.content[12_000_000...]))))
        #expect(response.status == 201)
        for node in nodes { #expect(areEqual(try node.exchange(.get("/files/t")).content, Self.content)) }
        let encrypted = try database.query(
            """
            SELECT count(*) >= 6 AND bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
            WHERE a.application_name LIKE 'onward%'
            """)
        #expect(encrypted == ["t"])
    }

    @Test("a server that does not trust the certificate of the database or of the storage stores nothing")
    func untrusted() throws {
        let other = try SelfSignedCertificate()
        try start(database: certificate, storage: certificate).awaitReadiness()
        for (root, ca, reason) in [
            (other, certificate, "certificate verify failed"), (certificate, other, "no secure connection"),
        ] {
            let node = try start(database: root, storage: ca)
            try node.awaitUnreadiness()
            let response = try node.exchange(
                Request("PUT", "/files/u", [], .bytes(Array(Self.content[..<100_000]))))
            #expect(response.status == 503, "\(response)")
            #expect(node.log.contains(reason), "\(node.log.suffix(2000))")
        }
        #expect(try database.query("SELECT count(*) FROM onward.name") == ["0"])
    }
}
