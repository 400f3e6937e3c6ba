import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// A disk that fails while the server is running, and recovers.
@Suite(
    "Failing disks", .blocking,
    .enabled(if: SystemCallTrace.isPossible, "needs strace, and the right to trace"))
struct FaultTests {
    private static let begun = 3000
    private static let length = 9000

    /// The file or directory whose calls fail.
    enum Place: Sendable {
        case bytes, uploads, files, file, log, database, anywhere
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        var calls: String
        var place: Place
        var error = "EIO"
        var occasions = "1+"
        var status = 500
        var code = "storage-error"
        /// Whether the offset remains as before the request, because the call fails before any byte is recorded.
        var keepsOffset = true

        var testDescription: String { "\(error) of \(calls), \(occasions), in \(place)" }
    }

    private func path(_ place: Place, _ server: ServerProcess) throws -> String? {
        switch place {
        case .bytes: server.root + "/uploads/" + (try #require(server.unfinished.keys.first))
        case .uploads: server.root + "/uploads"
        case .files: server.root + "/files"
        case .file: server.root + "/files/file.bin"
        case .log: server.root + "/onward.sqlite-wal"
        case .database: server.root + "/onward.sqlite"
        case .anywhere: nil
        }
    }

    private func part(_ range: Range<Int>) -> [UInt8] { BytePool.repeated(range) }

    private func expectCorrectOffset(
        _ response: Response, _ fault: Fault, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(response.status == fault.status, "\(response)", sourceLocation: sourceLocation)
        #expect(response.problem?.code == fault.code, "\(response)", sourceLocation: sourceLocation)
        #expect(response.complete == false, "\(response)", sourceLocation: sourceLocation)
    }

    @Test(
        "OFF-09 OFF-18: an append that cannot be stored is refused; the upload continues from the acknowledged offset",
        arguments: [
            Fault(calls: "fdatasync", place: .bytes),
            // A second fdatasync would succeed, although the bytes are lost.
            Fault(calls: "fdatasync", place: .bytes, occasions: "1"),
            Fault(calls: "pwrite64", place: .bytes),
            Fault(calls: "pwrite64", place: .bytes, error: "EROFS"),
            Fault(calls: "pwrite64", place: .bytes, error: "ENOSPC", status: 507, code: "insufficient-space"),
            Fault(calls: "fdatasync", place: .bytes, error: "ENOSPC", status: 507, code: "insufficient-space"),
            Fault(calls: "fdatasync", place: .bytes, error: "EDQUOT", status: 507, code: "insufficient-space"),
            Fault(calls: "fdatasync", place: .log, keepsOffset: false),
            Fault(calls: "fdatasync", place: .log, occasions: "1", keepsOffset: false),
            Fault(calls: "pwrite64", place: .log, keepsOffset: false),
            Fault(
                calls: "pwrite64", place: .log, error: "ENOSPC", status: 507, code: "insufficient-space",
                keepsOffset: false),
        ])
    func append(_ fault: Fault) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/file.bin", part(0..<Self.begun), length: Self.length)
            let faults = try Tracer(
                failing: fault.calls, of: server, on: path(fault.place, server), error: fault.error,
                occasions: fault.occasions)
            let refusal = try server.exchange(
                .append(.v8, location, at: Self.begun, complete: false, .bytes(part(Self.begun..<6000))))
            expectCorrectOffset(refusal, fault)
            if let reported = refusal.offset {
                #expect(reported == Self.begun || !fault.keepsOffset && reported == 6000)
            }
            #expect(try server.exchange(.get("/healthz")).status == 200)
            #expect(try faults.endFailures() > 0)
            // The server is not restarted. Bytes that could not be synchronized do not count.
            let head = try server.exchange(.retrieval(.v8, location))
            #expect(head.status == 204, "\(head)")
            let offset = try #require(head.offset)
            #expect(offset == Self.begun || !fault.keepsOffset && offset == 6000)
            let last = try server.exchange(
                .append(.v8, location, at: Int(offset), complete: true, .bytes(part(Int(offset)..<Self.length))))
            #expect(last.status == 201, "\(last)")
            #expect(server.published("file.bin") == part(0..<Self.length))
            try expectReady(server)
            try expectUndamaged(server)
        }
    }

    @Test(
        "CRE-16 OFF-18: a completion that cannot be stored is refused, and is finished when the disk works again",
        arguments: [
            Fault(calls: "renameat2", place: .uploads),
            Fault(calls: "renameat2", place: .uploads, error: "EROFS"),
            Fault(calls: "fdatasync", place: .log),
            Fault(calls: "fdatasync", place: .log, occasions: "2+"),
            Fault(calls: "fdatasync", place: .log, occasions: "3+"),
            Fault(calls: "utimensat", place: .anywhere),
        ])
    func completion(_ fault: Fault) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/file.bin", part(0..<Self.begun), length: Self.length)
            let faults = try Tracer(
                failing: fault.calls, of: server, on: path(fault.place, server), error: fault.error,
                occasions: fault.occasions)
            let refusal = try server.exchange(
                .append(.v8, location, at: Self.begun, complete: true, .bytes(part(Self.begun..<Self.length))))
            expectCorrectOffset(refusal, fault)
            #expect(try faults.endFailures() > 0)
            // The next request finds the completion either running or ended. Without a request, the periodic sweep ends
            // the completion.
            let head = try server.exchange(.retrieval(.v8, location))
            #expect(head.status == 204, "\(head)")
            let offset = try #require(head.offset)
            #expect(offset >= Self.begun)
            let last = try server.exchange(
                .append(
                    .v8, location, at: Int(offset), complete: true, .bytes(part(Int(offset)..<Self.length))))
            #expect(last.status == 201, "\(last)")
            #expect(server.published("file.bin") == part(0..<Self.length))
            #expect(server.publishedNames() == ["file.bin"])
            try expectReady(server)
            try expectUndamaged(server)
        }
    }

    @Test(
        "OFF-18: a publication that could not be synchronized fails permanently, and the earlier file is kept",
        arguments: [
            Fault(calls: "fsync", place: .file, occasions: "1"), Fault(calls: "fsync", place: .file),
            Fault(calls: "fsync", place: .files, occasions: "1"), Fault(calls: "fsync", place: .files),
        ], [false, true])
    func publication(_ fault: Fault, isPlain: Bool) throws {
        try withServer { server in
            #expect(try server.exchange(Request("PUT", "/files/file.bin", [], .bytes([1, 2, 3]))).status == 201)
            let location =
                isPlain ? nil : try server.begin(.v8, "/files/file.bin", part(0..<Self.begun), length: Self.length)
            let faults = try Tracer(
                failing: fault.calls, of: server, on: path(fault.place, server), error: fault.error,
                occasions: fault.occasions)
            let request: Request =
                if let location {
                    .append(.v8, location, at: Self.begun, complete: true, .bytes(part(Self.begun..<Self.length)))
                } else {
                    Request("PUT", "/files/file.bin", [], .bytes(part(0..<Self.length)))
                }
            let refusal = try server.exchange(request)
            #expect(refusal.status == 500, "\(refusal)")
            #expect(refusal.problem?.code == "storage-error", "\(refusal)")
            #expect(try faults.endFailures() > 0)
            func check() throws {
                #expect(try server.exchange(.get("/files/file.bin")).content == [1, 2, 3])
            }
            func checkEnd() throws {
                try check()
                if let location {
                    #expect(try [404, 410].contains(server.exchange(.retrieval(.v8, location)).status))
                }
                #expect(eventually { server.unfinished.isEmpty })
            }
            try check()
            // If the restored names cannot be synchronized either, the upload ends after the next start.
            if fault.place != .files || fault.occasions == "1" { try checkEnd() }
            try expectReady(server)
            try server.restart()
            try checkEnd()
            #expect(
                try server.exchange(Request("PUT", "/files/file.bin", [], .bytes(part(0..<Self.length)))).isSuccessful)
            #expect(server.published("file.bin") == part(0..<Self.length))
            try expectUndamaged(server)
        }
    }

    @Test(
        "CRE-23: a creation that cannot be stored leaves no file and no row in the database",
        arguments: [
            Fault(calls: "openat", place: .uploads), Fault(calls: "openat", place: .uploads, error: "EROFS"),
            Fault(calls: "openat", place: .uploads, error: "EMFILE"),
            Fault(calls: "openat", place: .uploads, error: "ENOSPC", status: 507, code: "insufficient-space"),
            Fault(calls: "fdatasync", place: .log),
        ])
    func creation(_ fault: Fault) throws {
        try withServer { server in
            // Creates the write-ahead log of the database.
            _ = try server.begin(.v8, "/files/other", [1])
            let before = server.unfinished
            let faults = try Tracer(
                failing: fault.calls, of: server, on: path(fault.place, server), error: fault.error)
            let creation = Request.creation(complete: true, .bytes(part(0..<Self.length)))
            let refusal = try server.exchange(creation)
            #expect(refusal.status == fault.status, "\(refusal)")
            #expect(refusal.problem?.code == fault.code, "\(refusal)")
            #expect(try server.exchange(.get("/readyz")).status == 503)
            #expect(try faults.endFailures() > 0)
            #expect(server.unfinished == before)
            #expect(server.published("file.bin") == nil)
            #expect(try server.exchange(creation).status == 201)
            #expect(server.published("file.bin") == part(0..<Self.length))
            try expectReady(server)
            try expectUndamaged(server)
        }
    }

    @Test("SEC-17: a server without free descriptors reports an error, and continues when descriptors are free again")
    func descriptors() throws {
        try withServer { server in
            let process = server.process.identifier
            let listening = sockets(process).count
            let location = try server.begin(.v8, "/files/file.bin", part(0..<Self.begun), length: Self.length)
            let connection = try server.connect()
            #expect(try connection.exchange(.get("/healthz")).status == 200)
            // Waits until the server has closed the connection of the creation: only `connection` is left.
            #expect(eventually { sockets(process).count == listening + 1 })
            let open = Set(descriptors(process))
            let free = try #require((0...open.count).first { !open.contains($0) })
            try setDescriptorLimit(free, process)
            let refusal = try connection.exchange(
                .append(.v8, location, at: Self.begun, complete: true, .bytes(part(Self.begun..<Self.length))))
            expectCorrectOffset(refusal, Fault(calls: "openat", place: .uploads))
            // Each connection that the server still accepts needs a descriptor (the refusal can end `connection`), until
            // one connection waits.
            var accepted: [RawConnection] = []
            var waiting = try server.connect()
            try waiting.send(.get("/healthz"))
            while waiting.hasInput(within: .milliseconds(500)) {
                #expect(try waiting.readResponse().status == 200)
                accepted.append(waiting)
                try #require(accepted.count < 10, "the server has free descriptors")
                waiting = try server.connect()
                try waiting.send(.get("/healthz"))
            }
            // Waiting for a descriptor needs no processor time.
            let before = try server.processorTime()
            #expect(!waiting.hasInput(within: .milliseconds(500)))
            #expect(try server.processorTime() - before < 20, "ticks of 10 ms")
            withExtendedLifetime((connection, accepted)) {}
            try setDescriptorLimit(4096, process)
            #expect(try waiting.readResponse().status == 200)
            let offset = Int(try #require(try server.exchange(.retrieval(.v8, location)).offset))
            let last = try server.exchange(
                .append(.v8, location, at: offset, complete: true, .bytes(part(offset..<Self.length))))
            #expect(last.status == 201, "\(last)")
            #expect(server.published("file.bin") == part(0..<Self.length))
            try expectReady(server)
        }
    }

    private func descriptors(_ process: pid_t) -> [Int] {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")) ?? []).compactMap { Int($0) }
    }

    private func sockets(_ process: pid_t) -> [Int] {
        descriptors(process).filter { number in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/fd/\(number)")
            return target?.hasPrefix("socket:") ?? false
        }
    }

    /// Sets the soft limit of a running process (prlimit(1)).
    private func setDescriptorLimit(_ limit: Int, _ process: pid_t) throws {
        let tool = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(process)", "--nofile=\(limit):"])
        #expect(try tool.awaitEnding() == .exited(0), "\(tool.errorOutput)")
    }

    /// Waits until `/readyz` responds with 200. The server keeps the result of a check for a second.
    private func expectReady(_ server: ServerProcess) throws {
        #expect(try eventually { try server.exchange(.get("/readyz")).status == 200 })
    }

    private func expectUndamaged(_ server: ServerProcess) throws {
        #expect(try server.stop() == .exited(0))
        let check = try ChildProcess(ExecutableLocation.onward(), ["check", "--root", server.root])
        #expect(try check.awaitEnding() == .exited(0), "\(check.errorOutput)")
        try server.restart()
    }
}
