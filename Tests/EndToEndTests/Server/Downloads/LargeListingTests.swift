import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import Testing

/// The memory and time of listings of a directory with many files.
@Suite("Listings of large directories", .blocking(limit: .seconds(30 * 60)), .serialized)
struct LargeListingTests {
    private static let directory = "/files/\(ManyFiles.name)/"

    private func html(_ target: String = directory) -> Request { .get(target).with("Accept", "*/*") }

    private func residentBytes(_ server: ServerProcess) throws -> Int {
        try ProcessUse(of: server).resident << 10
    }

    @Test("Eight readers that stop reading cost a few MiB of memory, and a listing starts before the last file is read")
    func slowReaders() throws {
        try withServer { server in
            let many = try ManyFiles(lentTo: server)
            defer { withExtendedLifetime(many) {} }
            // The first request is not measured: it costs more.
            _ = try server.exchange(html("/files/"))
            _ = try server.exchange(.listing(Self.directory + "?limit=1"))
            for request in [html(), .page(Self.directory), .listing(Self.directory)] {
                let before = try residentBytes(server)
                var readers: [RawConnection] = []
                var firstBytes: [Int64] = []
                for _ in 0..<8 {
                    let reader = try server.connect(receiveBuffer: 16 << 10)
                    let start = SystemClock.monotonicNanoseconds()
                    try reader.send(request)
                    while reader.received.count < 60_000 {
                        _ = try reader.receiveMore(until: Deadline(in: .seconds(60)))
                    }
                    firstBytes.append(SystemClock.monotonicNanoseconds() - start)
                    readers.append(reader)
                }
                let grown = try residentBytes(server) - before
                #expect(grown < 16 << 20, "\(grown >> 20) MiB for \(readers.count) readers")
                print(
                    "\(ManyFiles.count) files, \(request.fields): \(grown >> 10) KiB, \(firstBytes.map { $0 / 1000 }) µs"
                )
                for reader in readers { reader.reset() }
            }
        }
    }

    @Test("A page of HTML lists every file once, and its first bytes arrive long before the last")
    func complete() throws {
        try withServer { server in
            let many = try ManyFiles(lentTo: server)
            defer { withExtendedLifetime(many) {} }
            _ = try server.exchange(html("/files/"))
            let before = try residentBytes(server)
            let connection = try server.connect()
            let start = SystemClock.monotonicNanoseconds()
            try connection.send(html())
            while connection.received.isEmpty { _ = try connection.receiveMore(until: Deadline(in: .seconds(60))) }
            let first = SystemClock.monotonicNanoseconds() - start
            let response = try connection.readResponse(within: .seconds(900))
            let total = SystemClock.monotonicNanoseconds() - start
            var found = [Bool](repeating: false, count: ManyFiles.count)
            for row in response.content.split(separator: UInt8(ascii: "\n")) {
                guard let number = Self.number(in: row) else { continue }
                #expect(!found[number])
                found[number] = true
            }
            #expect(found.allSatisfy { $0 })
            #expect(first < total / 4, "\(first) of \(total) ns")
            let grown = try residentBytes(server) - before
            #expect(grown < 8 << 20, "\(grown >> 10) KiB")
            print("\(ManyFiles.count) files: first bytes after \(first / 1000) µs, all after \(total / 1_000_000) ms")
        }
    }

    /// The number of the file in a row; `nil` if the row is not about a file.
    private static func number(in row: ArraySlice<UInt8>) -> Int? {
        let start = Array("<tr><td><a href=\"./file%20".utf8)
        guard row.starts(with: start) else { return nil }
        return Int(String(decoding: row.dropFirst(start.count).prefix(7), as: UTF8.self))
    }

    @Test("The web interface has the first 10,000 files as rows, and notes that there are more")
    func page() throws {
        try withServer { server in
            let many = try ManyFiles(lentTo: server)
            defer { withExtendedLifetime(many) {} }
            _ = try server.exchange(.page("/files/"))
            let before = try residentBytes(server)
            let page = try server.exchange(.page(Self.directory))
            let rows = page.text.split(separator: "\n").filter { $0.contains("<tr data-size=\"0\"") }
            #expect(rows.count == 10_000 && Set(rows).count == rows.count)
            #expect(page.text.contains("</tr>\n<tr class=\"more\" data-more></tr>\n</tbody>"))
            let listed = try server.exchange(html()).text
            let names = listed.split(separator: "\n").filter { $0.contains("<tr><td>") }.prefix(10_000).compactMap {
                $0.firstMatch(of: /href="([^"]*)"/)?.1
            }
            #expect(rows.compactMap { $0.firstMatch(of: /href="([^"]*)"/)?.1 } == names)
            let grown = try residentBytes(server) - before
            #expect(grown < 8 << 20, "\(grown >> 10) KiB")
        }
    }

    @Test("Pages of JSON list every file once, in order, with memory for one page")
    func pages() throws {
        try withServer { server in
            let many = try ManyFiles(lentTo: server)
            defer { withExtendedLifetime(many) {} }
            _ = try server.exchange(.listing("/files/"))
            let connection = try server.connect()
            var next: String? = Self.directory + "?limit=10000"
            var number = 0
            var resident: [Int] = []
            let start = SystemClock.monotonicNanoseconds()
            while let target = next {
                let response = try connection.exchange(.listing(target))
                #expect(response.status == 200)
                let entries = try response.listing()
                #expect(entries.count == min(10_000, ManyFiles.count - number))
                for entry in entries {
                    #expect(entry.name == ManyFiles.fileName(number))
                    number += 1
                }
                resident.append(try residentBytes(server))
                next = response.nextPage
            }
            #expect(number == ManyFiles.count)
            #expect((resident.last ?? 0) - (resident.first ?? 0) < 8 << 20, "\(resident)")
            let total = SystemClock.monotonicNanoseconds() - start
            print("\(ManyFiles.count) files: \(resident.count) pages, \(total / Int64(resident.count) / 1000) µs each")
        }
    }
}
