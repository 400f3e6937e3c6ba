import Glibc
import SystemCalls
import TestSupport
import Testing

/// The negotiated parameters, as `openssl s_client` reports them.
@Suite("TLS policy", .serialized, .blocking)
struct TLSPolicyTests {
    /// Sends a request and returns what s_client reports about its connection.
    private func handshake(_ fixture: TLSFixture, _ options: String...) throws -> String {
        let script = """
            printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' \\
              | openssl s_client -ign_eof -connect "$0" "$@" 1>&2
            """
        let process = try ChildProcess(
            "/bin/sh", ["-c", script, "127.0.0.1:\(fixture.server.port)"] + options)
        _ = try process.awaitEnding()
        return process.errorOutput
    }

    private func isAccepted(_ fixture: TLSFixture, _ options: String...) throws -> Bool {
        let process = try ChildProcess(
            "/bin/sh",
            [
                "-c", "exec openssl s_client -connect \"$0\" \"$@\" < /dev/null > /dev/null 2>&1",
                "127.0.0.1:\(fixture.server.port)",
            ] + options)
        return try process.awaitEnding() == .exited(0)
    }

    @Test(
        "of the TLS 1.2 suites only those with forward secrecy and authenticated encryption are accepted",
        arguments: SelfSignedCertificate.Algorithm.allCases)
    func suites(algorithm: SelfSignedCertificate.Algorithm) throws {
        let fixture = try TLSFixture(identity: SelfSignedCertificate(algorithm))
        let script = """
            for suite in $(openssl ciphers -s -tls1_2 'ALL:COMPLEMENTOFALL:@SECLEVEL=0' | tr : ' '); do
              echo "tried $suite" >&2
              openssl s_client -connect "$0" -tls1_2 -cipher "$suite:@SECLEVEL=0" < /dev/null > /dev/null 2>&1 \\
                && echo "accepted $suite" >&2
            done
            """
        let process = try ChildProcess("/bin/sh", ["-c", script, "127.0.0.1:\(fixture.server.port)"])
        _ = try process.awaitEnding(within: .seconds(300))
        let lines = process.errorOutput.split(separator: "\n")
        #expect(lines.count { $0.hasPrefix("tried ") } > 40)
        let accepted = lines.filter { $0.hasPrefix("accepted ") }.map { $0.dropFirst("accepted ".count) }
        let name = algorithm == .rsa ? "RSA" : "ECDSA"
        #expect(
            Set(accepted) == [
                "ECDHE-\(name)-AES256-GCM-SHA384", "ECDHE-\(name)-CHACHA20-POLY1305", "ECDHE-\(name)-AES128-GCM-SHA256",
            ])
    }

    @Test("TLS 1.3 is accepted with its three common suites; finite-field groups and SHA-1 are refused")
    func parameters() throws {
        let fixture = try TLSFixture()
        for suite in ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"] {
            #expect(try isAccepted(fixture, "-tls1_3", "-ciphersuites", suite))
        }
        for suite in ["TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"] {
            #expect(try !isAccepted(fixture, "-tls1_3", "-ciphersuites", suite))
        }
        for group in ["X25519", "P-256", "P-384", "P-521"] {
            #expect(try isAccepted(fixture, "-tls1_3", "-groups", group))
        }
        #expect(try !isAccepted(fixture, "-tls1_3", "-groups", "ffdhe2048"))
        let weak = "ALL:@SECLEVEL=0"
        #expect(try isAccepted(fixture, "-tls1_2", "-sigalgs", "RSA+SHA256", "-cipher", weak))
        #expect(try !isAccepted(fixture, "-tls1_2", "-sigalgs", "RSA+SHA1", "-cipher", weak))
        for version in ["-tls1", "-tls1_1"] { #expect(try !isAccepted(fixture, version, "-cipher", weak)) }
    }

    @Test("the server's order of suites has precedence over the client's")
    func order() throws {
        let fixture = try TLSFixture()
        let reversed = "ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"
        #expect(
            try handshake(fixture, "-tls1_2", "-cipher", reversed).contains("Cipher is ECDHE-RSA-AES128-GCM-SHA256"))
        let newer = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"
        #expect(
            try handshake(fixture, "-tls1_3", "-ciphersuites", newer).contains("Cipher is TLS_AES_128_GCM_SHA256"))
    }

    @Test("a ticket resumes a session, without early data", arguments: ["-tls1_2", "-tls1_3"])
    func resumption(version: String) throws {
        let fixture = try TLSFixture()
        let session = fixture.path("session")
        let first = try handshake(fixture, version, "-sess_out", session)
        #expect(first.contains("New, TLSv1") && first.contains("ok\n"))
        let second = try handshake(fixture, version, "-sess_in", session)
        #expect(second.contains("Reused, TLSv1") && second.contains("ok\n"), "\(second)")
        if version == "-tls1_3" {
            let request = try fixture.write(Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8), as: "early")
            let third = try handshake(fixture, version, "-sess_in", session, "-early_data", request)
            #expect(!third.contains("Early data was accepted"))
        }
    }

    @Test(
        "a ticket does not resume a session after the certificate was replaced, or after a restart",
        arguments: ["-tls1_2", "-tls1_3"])
    func replacedCertificate(version: String) throws {
        let fixture = try TLSFixture()
        let session = fixture.path("session")
        _ = try handshake(fixture, version, "-sess_out", session)
        let other = try SelfSignedCertificate(.ecdsa)
        try fixture.install(other)
        try fixture.server.reload()
        #expect(try handshake(fixture, version, "-sess_in", session).contains("New, TLSv1"))
        _ = try handshake(fixture, version, "-sess_out", session)
        #expect(try handshake(fixture, version, "-sess_in", session).contains("Reused, TLSv1"))
        try fixture.server.restart()
        #expect(try handshake(fixture, version, "-sess_in", session).contains("New, TLSv1"))
    }

    /// The output of s_client about a handshake and its alerts.
    private func report(_ fixture: TLSFixture, _ options: String...) throws -> (isAccepted: Bool, output: String) {
        let script = "exec openssl s_client -msg -connect \"$0\" \"$@\" < /dev/null 1>&2"
        let process = try ChildProcess("/bin/sh", ["-c", script, "127.0.0.1:\(fixture.server.port)"] + options)
        return (try process.awaitEnding() == .exited(0), process.errorOutput)
    }

    @Test(
        "a client that offers only other protocols gets the alert no_application_protocol (RFC 7301)",
        arguments: ["-tls1_2", "-tls1_3"])
    func protocols(version: String) throws {
        let fixture = try TLSFixture()
        for offer in ["h2", "h2,spdy/3", "http/0.9"] {
            let refused = try report(fixture, version, "-alpn", offer)
            #expect(!refused.isAccepted, "\(offer)")
            #expect(refused.output.contains("alert no application protocol"), "\(offer): \(refused.output)")
        }
        for offer in ["h2,http/1.1", "http/1.0,http/1.1", "http/1.0"] {
            let accepted = try report(fixture, version, "-alpn", offer)
            let chosen = "ALPN protocol: " + (offer == "http/1.0" ? "http/1.0\n" : "http/1.1\n")
            #expect(accepted.isAccepted && accepted.output.contains(chosen), "\(accepted.output)")
        }
        let none = try report(fixture, version)
        #expect(none.isAccepted && none.output.contains("No ALPN negotiated"))
    }

    @Test(
        "a client whose handshake is refused gets an alert with the reason",
        arguments: [
            ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1_2", "-cipher", "AES128-SHA"],
            ["-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_SHA256"], ["-tls1_3", "-groups", "ffdhe2048"],
        ])
    func alerts(options: [String]) throws {
        let fixture = try TLSFixture()
        let script = "exec openssl s_client -msg -connect \"$0\" \"$@\" < /dev/null 1>&2"
        let process = try ChildProcess("/bin/sh", ["-c", script, "127.0.0.1:\(fixture.server.port)"] + options)
        #expect(try process.awaitEnding() != .exited(0))
        let alert = options[0] == "-tls1_1" ? "protocol_version" : "handshake_failure"
        let lines = process.errorOutput.split(separator: "\n").filter { $0.hasPrefix("<<< ") }
        #expect(lines.contains { $0.contains("Alert") && $0.hasSuffix("fatal \(alert)") }, "\(process.errorOutput)")
    }

    @Test("a client that requests a renegotiation gets an alert, and the connection ends")
    func renegotiation() throws {
        let fixture = try TLSFixture()
        let path = fixture.path("fifo")
        guard mkfifo(path, 0o600) == 0 else { throw Errno.current }
        let input = try FileDescriptor.open(path, [.readWrite])
        let process = try ChildProcess(
            "/bin/sh",
            [
                "-c", "exec openssl s_client -tls1_2 -msg -connect 127.0.0.1:$1 < \"$0\" 1>&2", path,
                "\(fixture.server.port)",
            ])
        try process.awaitErrorOutput(containing: "Extended master secret")
        let command: [UInt8] = Array("R\n".utf8)
        #expect(Glibc.write(input.rawValue, command, command.count) == command.count)
        #expect(try process.awaitEnding() != .exited(0))
        #expect(process.errorOutput.contains("RENEGOTIATING"))
        #expect(process.errorOutput.contains("warning no_renegotiation"), "\(process.errorOutput)")
        #expect(process.errorOutput.split(separator: "\n").count { $0.hasSuffix(", ServerHello") } == 1)
        #expect(try fixture.run(fixture.url + "/healthz").ending == .exited(0))
    }
}
