import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite("TLS", .serialized, .blocking)
struct TLSTests {
    private static let creation = [
        "-H", "Upload-Complete: ?1", "-H", "Upload-Draft-Interop-Version: 8", "-H", "Expect:",
    ]

    @Test("a 104 arrives before the final response, and downloads of files and ranges are correct")
    func transfers() throws {
        let fixture = try TLSFixture()
        let content = Payload.bytes(6_000_000)
        let source = try fixture.write(content, as: "source")
        let upload = try fixture.curl(["-v", "-T", source] + Self.creation + [fixture.url + "/files/f"])
        #expect(try upload.awaitEnding(within: .seconds(60)) == .exited(0))
        let heads = upload.errorOutput.split(separator: "\n").filter { $0.hasPrefix("< HTTP/1.1 ") }.map {
            $0.prefix(14)
        }
        #expect(heads.first == "< HTTP/1.1 104")
        #expect(heads.last == "< HTTP/1.1 201")
        #expect(upload.errorOutput.lowercased().contains("< location: /uploads/"))
        #expect(fixture.server.published("f") == content)

        #expect(try fixture.run("-o", fixture.path("entire"), fixture.url + "/files/f").ending == .exited(0))
        #expect(FileManager.default.contents(atPath: fixture.path("entire")) == Data(content))
        // curl continues a download that was cut.
        _ = try fixture.write(Array(content.prefix(1_234_567)), as: "partial")
        #expect(
            try fixture.run("-C", "-", "-o", fixture.path("partial"), fixture.url + "/files/f").ending == .exited(0))
        #expect(FileManager.default.contents(atPath: fixture.path("partial")) == Data(content))
        let parts = try fixture.run(
            "-r", "0-1,5999998-", "-o", "/dev/null", "-w", "%{http_code} %{content_type}", fixture.url + "/files/f")
        #expect(parts.output.hasPrefix("206 multipart/byteranges"))
    }

    @Test("an early refusal reaches a client that is still sending")
    func earlyRefusal() throws {
        let fixture = try TLSFixture("--max-size", "1000")
        let source = try fixture.write(Payload.bytes(20_000_000), as: "source")
        let chunked = try fixture.run(
            "-T", source, "-H", "Transfer-Encoding: chunked", "-H", "Expect:", "-o", fixture.path("answer"), "-w",
            "%{http_code}", fixture.url + "/files/f")
        #expect(chunked.output.contains("413"))
        let answer = FileManager.default.contents(atPath: fixture.path("answer")) ?? Data()
        #expect(String(decoding: answer, as: UTF8.self).contains("upload-too-large"))
    }

    /// A connection whose bytes a test sends one after the other.
    private struct Stream {
        let process: ChildProcess
        private let input: FileDescriptor

        init(_ fixture: TLSFixture) throws {
            let path = fixture.path("fifo")
            guard mkfifo(path, 0o600) == 0 else { throw Errno.current }
            // The pipe is opened for reading, too, so that the call does not wait for the other end.
            input = try FileDescriptor.open(path, [.readWrite])
            process = try ChildProcess(
                "/bin/sh",
                [
                    "-c", "exec openssl s_client -quiet -connect 127.0.0.1:$1 < \"$0\" 1>&2", path,
                    "\(fixture.server.port)",
                ])
        }

        func send(_ bytes: some Collection<UInt8>) throws {
            var remaining = Array(bytes)[...]
            while !remaining.isEmpty {
                let count = remaining.withUnsafeBytes { Glibc.write(input.rawValue, $0.baseAddress, $0.count) }
                guard count > 0 else { throw Errno.current }
                remaining = remaining.dropFirst(count)
            }
        }

        /// Waits for a response and returns its head and the bytes after it.
        func awaitResponse(_ status: Int) throws -> String {
            try process.awaitErrorOutput { text -> String? in
                guard let start = text.firstRange(of: "HTTP/1.1 \(status) "),
                    text[start.lowerBound...].contains("\r\n\r\n")
                else { return nil }
                return String(text[start.lowerBound...])
            }
        }
    }

    private func begin(_ fixture: TLSFixture, _ content: [UInt8], sending count: Int) throws -> Stream {
        let stream = try Stream(fixture)
        let request = Request.creation(.v8, "PUT", "/files/f", complete: true, .declared(Int64(content.count)))
        try stream.send(request.head(authority: fixture.server.authority))
        try stream.send(content.prefix(count))
        return stream
    }

    @Test("after SIGHUP the new certificate is used, and open connections stay open")
    func reload() throws {
        let fixture = try TLSFixture()
        let content = Payload.bytes(200_000)
        let stream = try begin(fixture, content, sending: 30_000)
        _ = try stream.awaitResponse(104)
        let other = try SelfSignedCertificate()
        try fixture.install(other)
        #expect(try fixture.run(fixture.url + "/healthz").ending == .exited(0))
        try fixture.server.reload()
        #expect(try fixture.run(fixture.url + "/healthz", trusting: other.certificate).ending == .exited(0))
        // CURLE_PEER_FAILED_VERIFICATION
        #expect(try fixture.run(fixture.url + "/healthz").ending == .exited(60))
        // A certificate that cannot be used changes nothing.
        try fixture.corruptKey()
        try fixture.server.reload()
        #expect(fixture.server.log.contains("the certificate stays as it was"))
        #expect(try fixture.run(fixture.url + "/healthz", trusting: other.certificate).ending == .exited(0))
        // The upload that began before the reload continues.
        try stream.send(content.dropFirst(30_000))
        _ = try stream.awaitResponse(201)
        #expect(fixture.server.published("f") == content)
    }

    @Test(
        "H11-11 H11-16 H11-22: requests are parsed in the same way, in one record or in one record for each byte",
        arguments: [true, false])
    func requestsInRecords(isInPieces: Bool) throws {
        let fixture = try TLSFixture()
        let stream = try Stream(fixture)
        let put = "PUT /files/f HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        let following =
            "2;x=y\r\nhe\r\n1\r\nl\r\n2\r\nlo\r\n0\r\n\r\nGET /files/f HTTP/1.1\r\nHost: localhost\r\n\r\n"
            + put + "1\r\nx\r\n0\r\n\0\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let bytes = Array((put + following).utf8)
        for piece in isInPieces ? bytes.map({ [$0] }) : [bytes] { try stream.send(piece) }
        let refusal = try stream.awaitResponse(400)
        #expect(refusal.contains("Content-Type: application/problem+json"))
        _ = try stream.process.awaitEnding()
        let answers = stream.process.errorOutput
        #expect(answers.contains("HTTP/1.1 201 ") && answers.contains("\r\n\r\nhello"))
        #expect(answers.contains("malformed-trailer") && !answers.contains("\r\n\r\nok\n"))
        #expect(fixture.server.published("f") == Array("hello".utf8))
    }

    @Test("connections with an endless handshake or with plain HTTP are closed, and others are served")
    func badHandshakes() throws {
        let fixture = try TLSFixture("--header-timeout", "1")
        let silent = try fixture.server.connect()
        let plain = try fixture.server.connect()
        try plain.send(.get("/healthz"))
        #expect(throws: (any Error).self) { try plain.readResponse() }
        #expect(try fixture.run(fixture.url + "/healthz").ending == .exited(0))
        #expect(throws: (any Error).self) { try silent.readResponse(within: .seconds(60)) }
        #expect(fixture.server.process.ending == nil)
    }

    @Test("a missing key, or the key of another certificate, prevents the start")
    func badFiles() throws {
        let (one, other) = (try SelfSignedCertificate(), try SelfSignedCertificate())
        let root = try TemporaryDirectory()
        func run(_ options: String...) throws -> OnwardRun {
            try OnwardRun(["serve", "--root", root.path + "/d"] + options)
        }
        try run("--tls-cert", one.certificate, "--tls-key", other.key).expect(64, "does not belong")
        try run("--tls-cert", one.certificate, "--tls-key", one.certificate).expect(64, "certificate.pem", "is missing")
        try run("--tls-cert", one.key, "--tls-key", one.key).expect(64, "key.pem")
        try run("--tls-cert", one.certificate).expect(64, "--tls-key")
        try run("--tls-cert", root.path + "/none", "--tls-key", one.key).expect(64, "--tls-cert: ", "ENOENT")
        #expect(!FileManager.default.fileExists(atPath: root.path + "/d"))
    }

    @Test("Unix sockets of the same server use no TLS")
    func unixSocket() throws {
        let directory = try TemporaryDirectory()
        let socket = directory.path + "/s"
        let fixture = try TLSFixture("--listen", "127.0.0.1:0", "--listen", "unix:" + socket)
        let answer = try fixture.run("--unix-socket", socket, "http://localhost/healthz")
        #expect(answer.ending == .exited(0))
        #expect(answer.output == "ok\n")
        #expect(try fixture.run(fixture.url + "/healthz").output == "ok\n")
    }
}
