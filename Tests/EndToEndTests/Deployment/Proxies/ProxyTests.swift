import Foundation
import TestSupport
import Testing

/// Uploads and downloads through the proxies and configurations of `docker/proxies`: `make test-proxies`.
@Suite(
    "Real proxies", .blocking, .serialized,
    .enabled(if: ReverseProxy.areEnabled, "make test-proxies installs and starts proxies"))
struct ProxyTests {
    private static let size = 12_000_000
    private static let content = Payload.bytes(size)

    private func conduct(of proxy: ReverseProxy) throws -> ProxyConduct {
        try #require(ProxyConduct.expected(of: proxy))
    }

    @Test(
        "Interim responses arrive as documented; the upload, a range of it, its location and the log are right",
        arguments: ReverseProxy.recommended, WireVersion.allCases)
    func upload(proxy: ReverseProxy, version: WireVersion) throws {
        try withProxy(proxy, version) { proxied in
            let file = try proxied.file(Self.content)
            // A name with characters that proxies decode, and fields that only a proxy may send.
            let target = "/files/a%20b%C3%A4+c%25.bin"
            let claims = [
                "X-Forwarded-For: 192.0.2.66", "X-Real-IP: 192.0.2.66", "Forwarded: for=192.0.2.66;host=evil.example",
                "X-Forwarded-Host: evil.example", "X-Forwarded-Prefix: /evil",
            ]
            let upload = try CurlRequest(
                proxied, target,
                ["-T", file, "--limit-rate", "4M", "-H", "Upload-Complete: ?1"] + claims.flatMap { ["-H", $0] })
            // The number of interim responses that arrived while the server was waiting for content.
            var live = 0
            _ = pollUntil(within: .seconds(30)) { () -> Bool? in
                let count = upload.interims.count
                if upload.process.ending == nil, (1..<Self.size).contains(proxied.received) { live = count }
                return upload.process.ending == nil ? nil : true
            }
            let final = try upload.response()
            let count = upload.interims.count
            let seen: ProxyConduct.Interims = count == 0 ? .none : live == 0 ? .late : .all
            print(
                "\(proxy) \(version.rawValue): \(seen.rawValue); \(live) of \(count) 104s during the content"
            )
            let expected = try conduct(of: proxy).interims
            #expect(seen == expected, "\(live) of \(count) came during the content")
            if seen == .all { #expect(live == count, "\(live) of \(count) came during the content") }

            #expect(final.status == 201)
            let base = proxy == .nghttpx ? proxied.url : ""
            #expect(final["Location"] == base + target)
            for interim in upload.interims.prefix(1) {
                #expect(interim["Location"]?.hasPrefix(base + "/uploads/") == true)
            }
            expectSame(proxied.server.published("a bä+c%.bin") ?? [], Self.content)
            let range = try proxied.curl(target, "-r", "1000-1999")
            #expect(try range.response().status == 206)
            expectSame(range.body, Array(Self.content[1000...1999]))
            let line = try proxied.server.process.awaitErrorOutput { log in
                log.split(separator: "\n").first { $0.contains(" PUT ") && $0.contains(" 201 ") }
            }
            #expect(line.contains(" peer=127.0.0.1 proxy=127.0.0.1"), "\(line)")
            #expect(!proxied.server.log.contains("192.0.2.66"), "\(proxy) passed on an address that the client claimed")
        }
    }

    @Test(
        "A slow upload gets no more interim responses than Caddy accepts", arguments: WireVersion.allCases
    )
    func slow(version: WireVersion) throws {
        try withProxy(.caddy, version) { proxied in
            let file = try proxied.file(Self.content)
            let upload = try CurlRequest(
                proxied, "/files/a.bin", ["-T", file, "--limit-rate", "1M", "-H", "Upload-Complete: ?1"])
            #expect(try upload.response().status == 201, "\(upload.process.errorOutput)")
            #expect((2...5).contains(upload.interims.count))
        }
    }

    @Test(
        "A cut upload keeps the sent bytes and can be continued, and another request can take over the upload",
        arguments: ReverseProxy.recommended, WireVersion.allCases)
    func cut(proxy: ReverseProxy, version: WireVersion) throws {
        try withProxy(proxy, version) { proxied in
            let file = try proxied.file(Self.content)
            let expected = try conduct(of: proxy)
            let location = try proxied.create("/files/a.bin")
            // The content has no length, and after this cut the upload must not be complete.
            let first = try CurlRequest(
                proxied, location,
                [
                    "-X", "PATCH", "-T", "-", "--limit-rate", "4M", "-H", "Content-Type: application/partial-upload",
                    "-H",
                    "Upload-Offset: 0", "-H", "Upload-Complete: ?1",
                ], input: file)
            try proxied.awaitReceived(1_000_000)
            first.process.kill(SIGKILL)
            try first.finish()
            let afterCut = try proxied.state(of: location)
            #expect(afterCut.offset >= 1_000_000 && afterCut.offset < Self.size && !afterCut.isComplete)
            #expect(proxied.server.published("a.bin") == nil)
            // Another request retrieves the offset: the request that is still sending content ends, on both sides of
            // the proxy.
            let remaining = try proxied.file(Array(Self.content[afterCut.offset...]), "remaining")
            let second = try proxied.append(remaining, to: location, at: afterCut.offset, "--limit-rate", "2M")
            try proxied.awaitReceived(afterCut.offset + 1_000_000)
            let takenOver = try proxied.state(of: location)
            #expect(takenOver.offset >= afterCut.offset + 1_000_000 && takenOver.offset < Self.size)
            try second.finish()
            let isRepeated = second.final?.status == 409
            #expect(isRepeated == expected.repeatsTakenOver.contains(version), "\(String(describing: second.final))")
            if !isRepeated { #expect(second.final.map { $0.status == 502 } ?? (second.process.ending != .exited(0))) }
            let tail = try proxied.file(Array(Self.content[takenOver.offset...]), "tail")
            let last = try proxied.append(tail, to: location, at: takenOver.offset).response()
            #expect(last.status == 201 && last["Upload-Complete"] == "?1")
            expectSame(proxied.server.published("a.bin") ?? [], Self.content)
            #expect(try proxied.state(of: location).isComplete)
        }
    }

    @Test(
        "A response before the end of the content reaches curl at the documented time",
        arguments: ReverseProxy.recommended, WireVersion.allCases)
    func earlyAnswer(proxy: ReverseProxy, version: WireVersion) throws {
        try withProxy(proxy, version) { proxied in
            let file = try proxied.file(Self.content)
            let location = try proxied.create("/files/a.bin")
            let refused = try proxied.append(file, to: location, at: 5, "--limit-rate", "4M").finish()
            let sent = try #require(refused.sent)
            let seen: ProxyConduct.EarlyAnswer? =
                refused.final == nil
                ? (refused.process.ending == .exited(92) ? .lostByCurl : nil)
                : sent < Self.size / 2 ? .early : .afterContent
            print(
                "\(proxy) \(version.rawValue): 409 \(seen?.rawValue ?? "?"), \(sent) of \(Self.size) bytes sent")
            let expected = try conduct(of: proxy).earlyAnswer[version]
            #expect(seen == expected, "\(refused.process.errorOutput)")
            if let final = refused.final {
                #expect(final.status == 409 && final["Upload-Offset"] == "0")
            }
            // The proxy's connections to the server and to the client are still usable.
            #expect(try proxied.state(of: location) == (0, false))
        }
    }

    @Test(
        "onward put and onward get resume after kills, and report the status of an error response",
        arguments: ReverseProxy.recommended, WireVersion.allCases)
    func client(proxy: ReverseProxy, version: WireVersion) throws {
        try withProxy(proxy, version) { proxied in
            let home = try CommandHome()
            let file = try home.file(Self.content)
            let url = proxied.url + "/files/a.bin"
            let common = ["--json", "--cacert", proxied.certificate]
            let put = ["put"] + common + [file, url]
            let killed = try home.start(put + ["--limit-rate", "4M"])
            _ = try killed.awaitEvent("progress") { ($0.number("sent") ?? 0) > 4_000_000 }
            try proxied.awaitReceived(2_000_000)
            killed.process.kill(SIGKILL)
            _ = try killed.process.awaitEnding()
            let again = try home.run(put)
            try again.expect(0)
            let resumed = try #require(try again.objects().first { $0.name == "resumed" }, "\(again.output)")
            #expect((resumed.number("at") ?? 0) >= 2_000_000)
            #expect(try again.objects().last?.text("location") == url)
            expectSame(proxied.server.published("a.bin") ?? [], Self.content)

            let get = ["get"] + common + [url, "-o", home.path + "/copy"]
            let broken = try home.start(get + ["--limit-rate", "4M"])
            _ = try broken.awaitEvent("progress") { ($0.number("received") ?? 0) > 4_000_000 }
            broken.process.kill(SIGKILL)
            _ = try broken.process.awaitEnding()
            try home.run(get).expect(0)
            let copy = FileManager.default.contents(atPath: home.path + "/copy").map { Array($0) } ?? []
            expectSame(copy, Self.content)

            // The server refuses a path below a file.
            let refused = try home.run(["put"] + common + [file, url + "/x"])
            try refused.expect(69)
            let status = try refused.objects().last?.number("status")
            #expect(status == 409, "\(refused.output)")
            #expect(home.stateNames == [])
        }
    }

    @Test(
        "if a proxy serves the server below a prefix, as its configuration describes, locations have the prefix",
        arguments: [ReverseProxy.haproxy, .caddy, .nginx, .apache])
    func prefix(proxy: ReverseProxy) throws {
        let changes: [(String, String)] =
            switch proxy {
            case .haproxy:
                [
                    (
                        "    http-request del-header X-Forwarded-Prefix\n",
                        "    http-request set-header X-Forwarded-Prefix /inbox\n    http-request replace-path /inbox(/.*) \\1\n"
                    )
                ]
            case .caddy:
                [
                    ("\treverse_proxy 127", "\turi strip_prefix /inbox\n\treverse_proxy 127"),
                    ("header_up -X-Forwarded-Prefix", "header_up X-Forwarded-Prefix /inbox"),
                ]
            case .nginx:
                [
                    ("location / {", "location /inbox/ {"), ("http://127.0.0.1:8080;", "http://127.0.0.1:8080/;"),
                    ("X-Forwarded-Prefix \"\"", "X-Forwarded-Prefix /inbox"),
                ]
            case .apache:
                [
                    ("ProxyPass / http", "ProxyPass /inbox/ http"),
                    ("RequestHeader unset X-Forwarded-Prefix", "RequestHeader set X-Forwarded-Prefix /inbox"),
                ]
            case .nghttpx, .varnish: []
            }
        try withProxy(proxy, .http2, changes: changes) { proxied in
            let home = try CommandHome()
            let content = Payload.bytes(100_000)
            let file = try home.file(content)
            let location = try proxied.create("/inbox/files/a.bin", "-H", "X-Forwarded-Prefix: /evil")
            #expect(location.hasPrefix("/inbox/uploads/"), "\(location)")
            #expect(try proxied.state(of: location).offset == 0)
            let final = try proxied.append(file, to: location, at: 0).response()
            #expect(final.status == 201 && final["Location"] == "/inbox/files/a.bin")
            let url = proxied.url + "/inbox/files/b.bin"
            try home.run("put", "--careful", "--cacert", proxied.certificate, file, url).expect(0)
            let download = try proxied.curl("/inbox/files/b.bin")
            #expect(try download.response().status == 200)
            expectSame(download.body, content)
        }
    }
}
