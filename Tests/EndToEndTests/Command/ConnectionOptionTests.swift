import ConformanceKit
import Foundation
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@Suite("Command: options of connections", .blocking)
struct ConnectionOptionTests {
    private func file(_ name: String = "a") throws -> ScriptedServer {
        try ScriptedServer { _, reply in try reply.respond(200, ["ETag": "\"1\""], "abc") }
    }

    @Test("--checksum accepts the file with this digest, and rejects every other one", arguments: [true, false])
    func checksum(isRight: Bool) throws {
        let server = try file()
        let home = try CommandHome()
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a" + (isRight ? "d" : "e")
        let target = home.path + "/copy"
        let run = try home.run("get", server.url + "/a", "-o", target, "--checksum", "sha256:" + digest, "--json")
        try run.expect(isRight ? 0 : 69)
        #expect(FileManager.default.fileExists(atPath: target) == isRight)
        if !isRight { #expect(try run.objects().last?.text("code") == "digest-mismatch") }
        #expect(home.stateNames == [])
    }

    @Test("--proxy is used instead of the proxy in the environment; an empty one is none")
    func proxy() throws {
        let proxy = try file()
        let home = try CommandHome()
        let get = ["get", "http://origin.invalid/a", "-o", home.path + "/copy"]
        let run = try home.start(get + ["--proxy", proxy.url], environment: ["http_proxy": "http://127.0.0.1:1"])
        try run.expect(0)
        #expect(proxy.requests.map(\.target) == ["http://origin.invalid/a"])
        let direct = try home.start(
            ["get", proxy.url + "/b", "-o", home.path + "/copy", "--proxy", ""],
            environment: ["http_proxy": "http://127.0.0.1:1"])
        try direct.expect(0)
        #expect(proxy.requests.map(\.target).last == "/b")
    }

    @Test("--netrc sends the credentials of the host, to no other server")
    func netrc() throws {
        let other = try file()
        let server = try ScriptedServer { request, reply in
            guard request.target == "/moved" else { return try reply.respond(200, ["ETag": "\"1\""], "abc") }
            try reply.respond(302, ["Location": other.url + "/a"])
        }
        let home = try CommandHome()
        _ = try home.file(Array("machine 127.0.0.1 login me password pw\n".utf8), ".netrc")
        for path in ["/a", "/moved"] {
            try home.run("get", server.url + path, "-o", home.path + "/copy", "--netrc").expect(0)
        }
        #expect(server.requests.allSatisfy { $0.fields["Authorization"] == "Basic bWU6cHc=" })
        #expect(other.requests.count == 1 && !other.requests[0].fields.contains("Authorization"))
        try home.run("get", server.url + "/a", "-o", home.path + "/copy").expect(0)
        #expect(server.requests.last?.fields.contains("Authorization") == false)
        unlink(home.path + "/.netrc")
        try home.run("get", server.url + "/a", "-o", home.path + "/copy", "--netrc").expect(0)
        #expect(server.requests.last?.fields.contains("Authorization") == false)
    }

    @Test("--netrc is saved with an interrupted transfer, but not its password")
    func resumedNetrc() throws {
        let isOpen = Monitor(false)
        let server = try ScriptedServer { request, reply in
            if request.fields["Range"] != nil {
                return try reply.respond(206, ["ETag": "\"1\"", "Content-Range": "bytes 3-5/6"], "def")
            }
            try reply.begin(200, ["ETag": "\"1\"", "Content-Length": "6"])
            try reply.send("abc")
            if !isOpen.withLock({ $0 }) { reply.reset() }
        }
        let home = try CommandHome()
        _ = try home.file(Array("machine 127.0.0.1 login me password sesame\n".utf8), ".netrc")
        try home.run("get", server.url + "/a", "-o", home.path + "/copy", "--netrc", "--retries", "0").expect(75)
        let state = try #require(home.stateNames.first)
        let saved = FileManager.default.contents(atPath: home.states + "/" + state) ?? Data()
        #expect(!String(decoding: saved, as: UTF8.self).contains("sesame"))
        try home.run("resume").expect(0)
        #expect(server.requests.allSatisfy { $0.fields["Authorization"] == "Basic bWU6c2VzYW1l" })
    }

    @Test("-4 and -6 choose the version of IP", arguments: [("-4", 0), ("-6", 75)] as [(String, Int32)])
    func versions(option: String, status: Int32) throws {
        // The server listens on 127.0.0.1 only.
        let server = try file()
        let home = try CommandHome()
        let url = "http://localhost:\(server.port)/a"
        try home.run("get", url, "-o", home.path + "/copy", option, "--retries", "0").expect(status)
        #expect(server.requests.count == (status == 0 ? 1 : 0))
    }

    @Test("--connect-timeout ends an attempt to connect")
    func connectTimeout() throws {
        // The backlog of the listener is full, so the kernel ignores further connections.
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                _ = bind(listener, pointer, length)
                _ = listen(listener, 0)
                _ = getsockname(listener, pointer, &length)
            }
        }
        let port = UInt16(bigEndian: address.sin_port)
        let filler = try LoopbackListener.connect(to: port)
        let home = try CommandHome()
        let start = ContinuousClock.now
        let run = try home.run(
            "get", "http://127.0.0.1:\(port)/a", "-o", home.path + "/copy", "--connect-timeout", "1", "--retries", "0")
        try run.expect(75)
        #expect(ContinuousClock.now - start < .seconds(25), "\(run.errors)")
        withExtendedLifetime(filler) {}
    }

    @Test("The message about a server that requires TLS suggests https")
    func missingTLS() throws {
        let server = try ScriptedServer { _, reply in
            // An alert of TLS: unexpected message (RFC 8446 section 6).
            try reply.send([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x0A])
            reply.close()
        }
        let home = try CommandHome()
        let run = try home.run("get", server.url + "/a", "-o", home.path + "/copy", "--retries", "0")
        try run.expect(69)
        #expect(run.errors.contains("use a URL that begins with https"), "\(run.errors)")
    }

    @Test("--cert and --key authenticate the client")
    func certificate() throws {
        let identity = try SelfSignedCertificate(.ecdsa)
        let server = try SecureServer("-Verify", "1", "-verify_return_error", "-CAfile", identity.certificate)
        let home = try CommandHome()
        let get = [
            "get", server.url + "/", "-o", home.path + "/copy", "--cacert", server.certificate, "--retries", "0",
        ]
        let without = try home.run(get)
        #expect(without.ending != .exited(0))
        // The page of the server has no validator and no length.
        let run = try home.run(get + ["--cert", identity.certificate, "--key", identity.key])
        try run.expect(0)
        let missing = try home.run(get + ["--cert", home.path + "/missing.pem"])
        try missing.expect(74)
        #expect(missing.errors.contains("missing.pem"), "\(missing.errors)")
    }
}
