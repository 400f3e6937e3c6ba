import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Listings as messages: pages, changes during the listing, failures, clients that disconnect.
@Suite("Listings as streams", .blocking)
struct ListingStreamTests {
    private func html(_ target: String) -> Request { .get(target).with("Accept", "*/*") }

    /// Creates empty files in a directory of the server.
    private func makeFiles(_ names: some Sequence<String>, in directory: String, of server: ServerProcess) throws {
        if server.shared != nil {
            try server.makeDirectories(directory)
            for name in names { try server.place([], as: directory + "/" + name) }
            return
        }
        let path = server.path(of: directory)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let descriptor = try FileDescriptor.open(path, [.readOnly, .directory])
        for name in names { _ = try descriptor.open(at: name, [.writeOnly, .create]) }
    }

    @Test("JSON pages list the names in byte order, and Link has the public URL of the next page")
    func pages() throws {
        try withServer("--public-url", "https://files.example/in%20box") { server in
            let names = ["B", "a", "a b", "a&b=c+d;e", "a%", "b?#", "é", "e\u{301}", "日本"]
            // No upload can create the last two files.
            try makeFiles(
                names + (server.shared == nil ? ["back\\slash", "bell\u{7}"] : []), in: "d x", of: server)
            let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            for limit in 1...10 {
                var found: [String] = []
                var next: String? = "https://files.example/in%20box/files/d%20x/?limit=\(limit)"
                while let url = next {
                    let target = String(url.dropFirst("https://files.example/in%20box".count))
                    let response = try server.exchange(.listing(target))
                    #expect(response.status == 200)
                    let page = try response.listing()
                    #expect(page.count <= limit)
                    for entry in page { #expect(entry.url.hasPrefix("https://files.example/in%20box/files/d%20x/")) }
                    found += page.map(\.name)
                    next = response.nextPage
                    #expect(
                        next?.hasPrefix("https://files.example/in%20box/files/d%20x/?limit=\(limit)&after=") ?? true)
                    let head = try server.exchange(Request("HEAD", target, [("Accept", "application/json")]))
                    #expect(head.value("Link") == response.value("Link") && head.status == 200)
                }
                #expect(found.map { Array($0.utf8) } == sorted.map { Array($0.utf8) })
            }
            let all = try server.exchange(.listing("/files/d%20x/"))
            #expect(try all.listing().count == names.count && !all.fields.contains("Link"))
            // A cursor is a position in the order; a file of that name need not exist.
            #expect(try server.exchange(.listing("/files/d%20x/?after=a+c")).listing().first?.name == "a%")
            #expect(try server.exchange(.listing("/files/d%20x/?after=%E6%97%A5%E6%9C%AC")).listing().isEmpty)
        }
    }

    private enum Change: Sendable { case create, remove }

    /// A function that creates or removes a file in a directory: without the server, or, with a shared storage, by
    /// requests.
    private func changes(in directory: String, of server: ServerProcess) throws
        -> @Sendable (Change, String) throws -> Void
    {
        if server.shared != nil {
            let (port, authority) = (server.port, server.authority)
            return { change, name in
                let connection = try RawConnection(port: port, authority: authority)
                let response = try connection.exchange(
                    Request(
                        change == .create ? "PUT" : "DELETE", "/files/\(directory)/\(name)", [],
                        change == .create ? .bytes([]) : .none))
                guard response.isSuccessful else { throw TestFailure("\(response)") }
            }
        }
        let descriptor = try FileDescriptor.open(server.path(of: directory), [.readOnly, .directory])
        return { change, name in
            switch change {
            case .create: _ = try descriptor.open(at: name, [.writeOnly, .create])
            case .remove: try descriptor.unlink(at: name)
            }
        }
    }

    @Test("Names that exist all the time are listed exactly once while others are added and removed")
    func changes() throws {
        let seed = SeededGenerator.runSeed
        try withServer { server in
            let stable = (0..<3000).map { "stable-\($0)-" + String(repeating: "x", count: 60) }
            try makeFiles(stable, in: "d", of: server)
            let (change, stop) = (try changes(in: "d", of: server), Monitor(false))
            let changer = try ClientThread("changer") {
                var random = SeededGenerator(seed: seed)
                var passing: [String] = []
                while !stop.withLock({ $0 }) {
                    if passing.count < 500 || random.oneIn(2) {
                        let name = "passing-\(UInt64.random(in: 0 ... .max, using: &random))"
                        try change(.create, name)
                        passing.append(name)
                    } else {
                        passing.shuffle(using: &random)
                        try change(.remove, passing.removeLast())
                    }
                }
            }
            let expected = stable.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            for round in 0..<3 {
                let reader = try server.connect(receiveBuffer: 16 << 10)
                let page = try reader.exchange(html("/files/d/")).text
                let linked = page.split(separator: "href=\"./stable-").dropFirst().map {
                    "stable-" + $0.prefix { $0 != "\"" }
                }
                #expect(linked.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) } == expected, "ONWARD_SEED=\(seed)")
                var found: [String] = []
                var next: String? = "/files/d/?limit=\([100, 999, 5000][round])"
                while let target = next {
                    let response = try server.exchange(.listing(target))
                    found += try response.listing().map(\.name)
                    next = response.nextPage
                }
                #expect(found.filter { $0.hasPrefix("stable") } == expected, "ONWARD_SEED=\(seed)")
                #expect(Set(found).count == found.count)
            }
            stop.withLock { $0 = true }
            #expect(changer.awaitEnd().isEmpty)
        }
    }

    @Test(
        "After a read error the server aborts the listing, so that no client uses it as a complete listing",
        .enabled(if: SystemCallTrace.isPossible, "needs strace, and the right to trace"))
    func failure() throws {
        try withServer { server in
            try makeFiles((0..<5000).map { "file-\($0)" }, in: "d", of: server)
            let fault = try Tracer(failing: "getdents64", of: server, on: nil, error: "EIO", occasions: "3+")
            let broken = try server.connect()
            try broken.send(html("/files/d/"))
            #expect(throws: WireFailure.self) { try broken.readResponse() }
            #expect(broken.received.starts(with: "HTTP/1.1 200 OK\r\n".utf8))
            #expect(!broken.received.elementsEqualAtEnd("0\r\n\r\n"))
            // An HTTP/1.0 response has no chunks: a normal end of the connection would end its content. So the server
            // must reset the connection.
            let old = try server.connect()
            var request = html("/files/d/")
            request.version = "HTTP/1.0"
            try old.send(request)
            #expect(try old.awaitClosing().closing == .reset)
            // A page is sent only when all of its names are known, so the server can still respond with an error.
            let page = try server.exchange(.listing("/files/d/"))
            #expect(page.status == 500 && page.problem?.code == "storage-error")
            #expect(try fault.endFailures() >= 3)
            let log = try server.process.awaitErrorOutput { text in
                text.split(separator: "\n").count { $0.contains("reason=content-failed interrupted") } >= 2 ? text : nil
            }
            #expect(log.contains("cannot list a directory: "))
            #expect(try server.exchange(html("/files/d/")).text.hasSuffix("</html>\n"))
            let metrics = try server.exchange(.get("/metrics")).text
            #expect(metrics.contains("content-failed\"} 2\n"))
        }
    }

    @Test("After a client disconnects, the server keeps neither a descriptor nor a thread for it")
    func unfinished() throws {
        try withServer { server in
            if let shared = server.shared {
                try shared.makeFiles(in: "d", count: 20_000, named: "'file-' || number || '-' || repeat('x', 200)")
            } else {
                let names = (0..<20_000).map { "file-\($0)-" + String(repeating: "x", count: 200) }
                try makeFiles(names, in: "d", of: server)
            }
            // The connections to a database stay open for later requests.
            let kept = server.shared == nil ? 0 : 11 * server.process.all.count
            _ = try server.exchange(.listing("/files/d/?limit=1"))
            let idle: ProcessUse? = try pollUntil(within: .seconds(60)) {
                let use = try ProcessUse(of: server)
                return server.connectionThreads == 0 ? use : nil
            }
            let before = try #require(idle)
            for round in 0..<12 {
                let reader = try server.connect(receiveBuffer: 16 << 10)
                try reader.send(html("/files/d/"))
                while reader.received.count < 40_000 { _ = try reader.receiveMore(until: Deadline(in: .seconds(60))) }
                if round.isMultiple(of: 2) { reader.reset() } else { reader.close() }
            }
            let freed: Bool? = try pollUntil(within: .seconds(60)) {
                let use = try ProcessUse(of: server)
                return use.descriptors <= before.descriptors + kept && server.connectionThreads == 0 ? true : nil
            }
            let after = try ProcessUse(of: server)
            #expect(freed == true, "\(after) after \(before)")
        }
    }
}

extension [UInt8] {
    fileprivate func elementsEqualAtEnd(_ text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
