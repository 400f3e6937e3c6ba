import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The handling of the fields that proxies add.
@Suite("Behind a proxy", .blocking)
struct ForwardingTests {
    /// An address of this machine other than the loopback address: a client with this address is not a trusted proxy.
    private static let ownAddress: String? = {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return nil }
        defer { freeifaddrs(list) }
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard let address = entry.ifa_addr, Int32(address.pointee.sa_family) == AF_INET,
                entry.ifa_flags & UInt32(IFF_UP) != 0, entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0
            else { continue }
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            guard getnameinfo(address, size, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 else {
                continue
            }
            return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        return nil
    }()

    private static let claims = [
        ("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "files.example"),
        ("X-Forwarded-Prefix", "/inbox"),
    ]

    private func creation(_ path: String = "/files/a.bin") -> Request {
        var request = Request.creation(.v8, "PUT", path, complete: false, .bytes([1, 2]))
        request.fields += Self.claims
        return request
    }

    @Test("Every location begins with the prefix that a proxy removed; the log has the client and the proxy")
    func prefix() throws {
        try withServer("--allow-anonymous") { server in
            let created = try server.exchange(creation())
            let location = try #require(created.location)
            #expect(location.hasPrefix("/inbox/uploads/"))
            #expect(created.interim.first?.location == location)
            // The proxy removes the prefix again. The stored response does not depend on the path of the request.
            let stored = String(location.dropFirst("/inbox".count))
            let direct = try server.exchange(.append(.v8, stored, at: 2, complete: true, .bytes([3])))
            #expect(direct.status == 201 && direct.location == "/files/a.bin")
            var again = Request.append(.v8, stored, at: 3, complete: true, .bytes([]))
            again.fields += Self.claims
            let repeated = try server.exchange(again)
            #expect(repeated.status == 201 && repeated.location == "/inbox/files/a.bin")
            let listing = try server.exchange(Request("GET", "/files/", Self.claims + [("Accept", "application/json")]))
            #expect(listing.text.contains("\"url\":\"/inbox/files/a.bin\""), "\(listing)")
            let line = try server.process.awaitErrorOutput { log in
                log.split(separator: "\n").first { $0.contains(" PUT /files/a.bin ") }
            }
            #expect(line.contains(" peer=192.0.2.7 proxy=127.0.0.1"))
        }
    }

    @Test("Every location begins with --public-url, whatever fields a proxy adds")
    func publicURL() throws {
        try withServer("--allow-anonymous", "--public-url", "https://files.example:8443/up/") { server in
            let response = try server.exchange(creation())
            #expect(response.location?.hasPrefix("https://files.example:8443/up/uploads/") == true)
            let put = try server.exchange(Request("PUT", "/files/b.bin", [], .bytes([1])))
            #expect(put.location == "https://files.example:8443/up/files/b.bin")
        }
    }

    @Test(
        "The proxy fields of an untrusted client are neither used nor logged; with --trust-proxy they are used",
        .enabled(if: ownAddress != nil, "needs an address other than the loopback address"))
    func stranger() throws {
        let address = try #require(Self.ownAddress)
        for isTrusted in [false, true] {
            let options =
                ["--allow-anonymous", "--listen", "0.0.0.0:0"] + (isTrusted ? ["--trust-proxy", address] : [])
            let server = try ServerProcess(options)
            defer { server.process.kill(SIGKILL) }
            let directory = try TemporaryDirectory()
            let ending = try Tool.curl.run(
                Self.claims.flatMap { ["-H", "\($0): \($1)"] } + [
                    "-H", "Forwarded: for=192.0.2.7", "-X", "PUT", "-d", "x", "-D", directory.path + "/head", "-H",
                    "Content-Type: text/plain", "http://\(address):\(server.port)/files/a.bin",
                ])
            #expect(ending == .exited(0))
            let head = String(
                decoding: FileManager.default.contents(atPath: directory.path + "/head") ?? Data(), as: UTF8.self)
            #expect(head.contains("Location: \(isTrusted ? "/inbox" : "")/files/a.bin\r\n"), "\(head)")
            let line = try server.process.awaitErrorOutput { log in
                log.split(separator: "\n").first { $0.contains(" PUT /files/a.bin 201 ") }
            }
            #expect(line.contains(isTrusted ? " peer=192.0.2.7 proxy=\(address)" : " peer=\(address)"), "\(line)")
            #expect(server.log.contains("192.0.2.7") == isTrusted)
        }
    }

    @Test("A request that a trusted proxy forwards without a token gets 403, even over a Unix socket")
    func anonymous() throws {
        try withServer("--trust-proxy", "127.0.0.0/8") { server in
            for claim in Self.claims + [("Forwarded", "for=127.0.0.1"), ("Via", "1.1 x"), ("X-Forwarded-Port", "1")] {
                let response = try server.exchange(Request("GET", "/files/", [claim]))
                #expect(response.status == 403, "\(claim.0)")
            }
        }
        let directory = try TemporaryDirectory()
        let server = try ServerProcess(["--listen", "unix:\(directory.path)/s"])
        let request = Request("GET", "/files/none", [("X-Forwarded-For", "192.0.2.7")])
        #expect(try RawConnection(unixPath: directory.path + "/s").exchange(request).status == 403)
        let line = try server.process.awaitErrorOutput { log in
            log.split(separator: "\n").first { $0.contains(" GET /files/none ") }
        }
        #expect(line.contains(" peer=192.0.2.7 proxy=unix"))
    }

    @Test("104 is never sent with --interim off, nor to a request with Onward-Interim: off")
    func interim() throws {
        for options in [["--interim", "off"], []] {
            let server = try ServerProcess(options)
            defer { server.process.kill(SIGKILL) }
            for isDeclined in [false, true] {
                var request = Request.creation(.v8, "PUT", "/files/a\(isDeclined)", complete: false, .bytes([1, 2]))
                if isDeclined { request.fields.append(("Onward-Interim", "OFF")) }
                let response = try server.exchange(request)
                #expect(response.interim.isEmpty == (isDeclined || !options.isEmpty))
                #expect(response.status == 201 && response.location?.hasPrefix("/uploads/") == true)
            }
        }
    }

    @Test(
        "Invalid values of the options are refused",
        arguments: [
            ["--public-url", "files.example"], ["--trust-proxy", "10.0.0.1/8"], ["--trust-proxy", "localhost"],
            ["--interim", "maybe"],
        ])
    func usage(options: [String]) throws {
        let run = try OnwardRun(["serve"] + options)
        run.expect(64, options[0])
    }
}
