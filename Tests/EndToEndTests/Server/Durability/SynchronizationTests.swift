import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Everything is on stable storage before it is reported. A test with SIGKILL cannot verify this, because the kernel
/// keeps the bytes that a killed process has written.
@Suite(
    "Order of synchronization", .blocking,
    .enabled(if: SystemCallTrace.isPossible, "needs strace, and the right to trace"))
struct SynchronizationTests {
    private static let sending: Set<String> = ["sendto", "sendmsg", "write", "writev"]

    /// Runs `body` with a traced server, and returns the trace after the server has ended.
    private func trace(
        _ options: [String] = [], _ body: (_ port: UInt16, _ root: String) throws -> Void
    ) throws -> SystemCallTrace {
        let directory = try TemporaryDirectory()
        let log = directory.path + "/trace"
        let process = try ChildProcess(
            "/usr/bin/strace",
            SystemCallTrace.options + ["-o", log, ExecutableLocation.onward(), "serve"]
                + ["--root", directory.path + "/data", "--listen", "127.0.0.1:0", "--min-free", "0"] + options)
        defer { process.kill(SIGKILL) }
        let port = try process.awaitErrorOutput { text -> UInt16? in
            guard let range = text.firstRange(of: "listening on 127.0.0.1:"), text.hasSuffix("\n") else { return nil }
            return UInt16(text[range.upperBound...].prefix { $0.isNumber })
        }
        try body(port, directory.path + "/data")
        // strace does not forward the signal, so the signal is sent to the server, the child process of strace.
        let server = try #require(Self.child(of: process.identifier))
        kill(server, SIGTERM)
        _ = try process.awaitEnding()
        return SystemCallTrace(textOfFile(log))
    }

    private static func child(of parent: pid_t) -> pid_t? {
        let text = FileManager.default.contents(atPath: "/proc/\(parent)/task/\(parent)/children") ?? Data()
        return String(decoding: text, as: UTF8.self).split(separator: " ").first.flatMap { pid_t($0) }
    }

    @Test(
        "OFF-09 OFF-18: bytes, their directory entry and their row are on stable storage before an offset is reported")
    func acknowledgment() throws {
        let trace = try trace { port, _ in
            func exchange(_ request: Request) throws -> Response { try RawConnection(port: port).exchange(request) }
            let created = try exchange(.creation(.v8, "PUT", "/files/a", complete: false, .bytes(Payload.bytes(5000))))
            let location = try #require(created.location)
            #expect(created.status == 201)
            #expect(try exchange(.append(.v8, location, at: 5000, complete: false, .bytes([1, 2]))).status == 204)
            #expect(try exchange(.retrieval(.v8, location)).offset == 5002)
        }
        let first = try trace.first(["pwrite64"], "/data/uploads/", ", 5000, 0)")
        let data = try trace.first(["fdatasync"], "/data/uploads/", after: first.end)
        let name = try trace.first(["fsync"], "/data/uploads>", after: first.end)
        let row = try trace.first(["fdatasync", "fsync"], "onward.sqlite-wal", after: max(data.end, name.end))
        let reply = try trace.first(Self.sending, "HTTP/1.1 201", after: first.end)
        #expect(row.end < reply.begin)
        let second = try trace.first(["pwrite64"], "/data/uploads/", ", 2, 5000)")
        let dataAgain = try trace.first(["fdatasync"], "/data/uploads/", after: second.end)
        let rowAgain = try trace.first(["fdatasync", "fsync"], "onward.sqlite-wal", after: dataAgain.end)
        let secondReply = try trace.first(Self.sending, "HTTP/1.1 204", after: second.end)
        #expect(rowAgain.end < secondReply.begin)
    }

    /// The events that report or store the progress of a running request.
    enum Report: CaseIterable, CustomTestStringConvertible {
        case retrieval, conflict, drain

        var testDescription: String { "\(self)" }
    }

    @Test(
        "OFF-09 OFF-10 OFF-18: bytes of a running append are synchronized before another request gets the offset",
        arguments: Report.allCases)
    func running(_ report: Report) throws {
        var held: RawConnection?
        let trace = try trace { port, root in
            let created = try RawConnection(port: port).exchange(
                .creation(.v8, "PUT", "/files/a", complete: false, .bytes(Payload.bytes(5000))))
            let location = try #require(created.location)
            let running = try RawConnection(port: port)
            try running.send(.append(.v8, location, at: 5000, complete: false, .declared(4000)))
            try running.send(Payload.bytes(2000))
            try awaitBytes(7000, in: root)
            switch report {
            case .retrieval:
                let head = try RawConnection(port: port).exchange(.retrieval(.v8, location))
                #expect(head.status == 204)
                #expect(head.offset == 7000)
            case .conflict:
                let refusal = try RawConnection(port: port).exchange(
                    .append(.v8, location, at: 6000, complete: false, .bytes([1])))
                #expect(refusal.status == 409)
                #expect(refusal.offset == 7000)
            // The append is still sending when SIGTERM arrives.
            case .drain: held = running
            }
        }
        withExtendedLifetime(held) {}
        let write = try trace.first(["pwrite64"], "/data/uploads/", ", 5000)")
        let last = try #require(
            trace.calls.last { $0.name == "pwrite64" && $0.text.contains("/data/uploads/") && $0.begin >= write.begin })
        #expect(last.endOfWrite == 7000)
        let data = try trace.first(["fdatasync"], "/data/uploads/", after: last.end)
        let row = try trace.first(["fdatasync", "fsync"], "onward.sqlite-wal", after: data.end)
        switch report {
        case .retrieval: #expect(try row.end < trace.first(Self.sending, "HTTP/1.1 204", after: last.end).begin)
        case .conflict: #expect(try row.end < trace.first(Self.sending, "HTTP/1.1 409", after: last.end).begin)
        case .drain: break
        }
    }

    /// Waits until the only unfinished upload has `count` bytes.
    private func awaitBytes(_ count: Int, in root: String) throws {
        #expect(
            try eventually {
                let names = try FileManager.default.contentsOfDirectory(atPath: root + "/uploads")
                let sizes = names.compactMap {
                    (try? FileManager.default.attributesOfItem(atPath: root + "/uploads/" + $0))?[.size] as? Int
                }
                return sizes.contains(count)
            })
    }

    @Test("OFF-09: an interim response reports only what is on stable storage")
    func interim() throws {
        let size = 12 << 20
        let trace = try trace { port, _ in
            let connection = try RawConnection(port: port)
            try connection.send(Request.creation(complete: true, .declared(Int64(size))))
            _ = try connection.requireInterim()
            try connection.send(Payload.bytes(9 << 20))
            // Progress is reported when bytes arrive after the first MiB are on stable storage.
            var sent = 9 << 20
            let progress: InterimResponse? = try pollUntil(within: .seconds(60)) {
                if sent < size - 1000 {
                    try connection.send(Payload.bytes(1000))
                    sent += 1000
                }
                return try? connection.requireInterim(within: .milliseconds(20))
            }
            #expect((progress?.offset ?? 0) > 0)
            try connection.send(Payload.bytes(size - sent))
            #expect(try connection.readResponse().status == 201)
        }
        let reply = try trace.first(Self.sending, "HTTP/1.1 104", "Upload-Offset")
        let offset = try #require(Int64(reply.text.components(after: "Upload-Offset: ").prefix { $0.isNumber }))
        let row = try #require(
            trace.calls.last {
                ["fdatasync", "fsync"].contains($0.name) && $0.text.contains("sqlite-wal") && $0.end < reply.begin
            })
        let data = try #require(
            trace.calls.last { $0.name == "fdatasync" && $0.text.contains("/data/uploads/") && $0.end < row.begin })
        let written = trace.calls.filter {
            $0.name == "pwrite64" && $0.text.contains("/data/uploads/") && $0.end < data.begin
        }
        #expect(offset <= written.map(\.endOfWrite).max() ?? 0)
        _ = try trace.first(["sync_file_range"], "/data/uploads/")
    }

    @Test(
        "CRE-16 OFF-18: decision, directories, rename and names are synchronized, in this order, before the response",
        arguments: [3, 3_000_000])
    func publication(count: Int) throws {
        // If all content arrives with the head, the upload is recorded at its end, and a new file needs no decision.
        let arrivesWithHead = count < 1000
        let trace = try trace { port, _ in
            let response = try RawConnection(port: port).exchange(
                .creation(.v8, "PUT", "/files/new/a", complete: true, .bytes([UInt8](repeating: 1, count: count))))
            #expect(response.status == 201)
        }
        let rename = try trace.first(["renameat2"], "/data/uploads>", "/data/files/new>")
        let write = try #require(
            trace.calls.last {
                $0.name == "pwrite64" && $0.text.contains("/data/uploads/") && $0.end < rename.begin
            })
        let data = try trace.first(["fdatasync", "fsync"], "/data/uploads/", after: write.end)
        #expect(data.end < rename.begin)
        let hasDecision = trace.calls.contains {
            ["fdatasync", "fsync"].contains($0.name) && $0.text.contains("sqlite-wal") && $0.begin > data.end
                && $0.end < rename.begin
        }
        #expect(hasDecision == !arrivesWithHead)
        let directory = try trace.first(["mkdirat"], "/data/files>", "\"new\"")
        let parent = try trace.first(["fsync"], "/data/files>", after: directory.end)
        #expect(parent.end < rename.begin)
        let target = try trace.first(["fsync"], "/data/files/new>", after: rename.end)
        // If no row refers to the old name, it need not be removed durably.
        let source = arrivesWithHead ? target : try trace.first(["fsync"], "/data/uploads>", after: rename.end)
        let row = try trace.first(["fdatasync", "fsync"], "onward.sqlite-wal", after: max(target.end, source.end))
        let reply = try trace.first(Self.sending, "HTTP/1.1 201")
        #expect(row.end < reply.begin)
    }

    @Test("with relaxed durability no response waits for the disk")
    func relaxed() throws {
        let trace = try trace(["--durability", "relaxed"]) { port, _ in
            let response = try RawConnection(port: port).exchange(
                .creation(.v8, "PUT", "/files/a", complete: true, .bytes([1, 2, 3])))
            #expect(response.status == 201)
        }
        let reply = try trace.first(Self.sending, "HTTP/1.1 201")
        #expect(
            !trace.calls.contains {
                $0.name == "fdatasync" && $0.text.contains("/data/uploads/") && $0.begin < reply.begin
            })
    }
}

extension SystemCallTrace.Call {
    /// The offset in the file at which a pwrite64 ended.
    fileprivate var endOfWrite: Int64 {
        let numbers = text.split(whereSeparator: { !$0.isNumber && $0 != "-" }).compactMap { Int64($0) }
        // …, count, offset) = written
        guard numbers.count >= 3 else { return 0 }
        return numbers[numbers.count - 2] + numbers[numbers.count - 1]
    }
}

extension String {
    fileprivate func components(after text: String) -> Substring {
        firstRange(of: text).map { self[$0.upperBound...] } ?? ""
    }
}
