import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// The cost of a start must not depend on the amount of stored data. `ONWARD_ROWS` sets the number of uploads and files
/// of each kind in the large directory (default: 20,000).
@Suite("A start with a large data directory", .serialized, .blocking)
struct StartSizeTests {
    private static let rows = ProcessInfo.processInfo.environment["ONWARD_ROWS"].flatMap { Int($0) } ?? 20_000

    /// The cost of a start.
    private struct Cost {
        var milliseconds = 0
        var processorMilliseconds = 0
        var residentKiB = 0
        /// The highest memory use at the end, after everything has been examined.
        var finalResidentKiB = 0
    }

    private func processorMilliseconds(_ process: pid_t) throws -> Int {
        let data = try #require(FileManager.default.contents(atPath: "/proc/\(process)/stat"))
        let text = String(decoding: data, as: UTF8.self)
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        let ticks = (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0)
        return ticks * 1000 / sysconf(Int32(_SC_CLK_TCK))
    }

    private func start(_ catalog: LargeCatalog) throws -> Cost {
        let place = try LargeCatalog.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: place) }
        let root = place + "/data"
        try catalog.make(at: root)
        var cost = Cost()
        let port = try FixedPort.next()
        let begun = SystemClock.monotonicNanoseconds()
        let process = try ServerProcess.run(["--root", root, "--listen", "127.0.0.1:\(port)", "--min-free", "0"])
        defer { process.kill(SIGKILL) }
        #expect(
            eventually(within: .seconds(120)) {
                (try? RawConnection(port: port).exchange(.get("/readyz")))?.status == 200
            }, "\(process.errorOutput)")
        cost.milliseconds = Int((SystemClock.monotonicNanoseconds() - begun) / 1_000_000)
        cost.processorMilliseconds = try processorMilliseconds(process.identifier)
        cost.residentKiB = (process.peakResidentBytes() ?? 0) >> 10
        // Waits until the server has removed all orphans.
        let isSwept: Bool? = pollUntil(within: .seconds(300)) {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: root + "/uploads")) ?? []
            return names.contains { $0.hasPrefix("orphan") } ? nil : true
        }
        #expect(isSwept == true)
        // The metric is missing until everything is counted.
        let counted: String? = pollUntil(within: .seconds(300)) {
            let text = (try? RawConnection(port: port).exchange(.get("/metrics")))?.text ?? ""
            return text.contains("onward_uploads{state=\"receiving\"}") ? text : nil
        }
        let metrics = try #require(counted)
        #expect(metrics.contains("onward_uploads{state=\"receiving\"} \(catalog.unfinished)"), "\(metrics)")
        #expect(metrics.contains("onward_uploads{state=\"complete\"} \(catalog.finished)"))
        cost.finalResidentKiB = (process.peakResidentBytes() ?? 0) >> 10
        process.kill(SIGTERM)
        #expect(try process.awaitEnding() == .exited(0))
        return cost
    }

    @Test(
        "the memory and the work of a start do not grow with the number of rows and files, after a stop or a crash",
        arguments: [true, false])
    func size(_ hasCleanStop: Bool) throws {
        let few = LargeCatalog(
            finished: 2000, unfinished: 2000, files: 2000, orphans: 2000, hasCleanStop: hasCleanStop)
        let many = LargeCatalog(
            finished: Self.rows, unfinished: Self.rows, files: Self.rows, orphans: Self.rows,
            hasCleanStop: hasCleanStop)
        let small = try start(few)
        let large = try start(many)
        print("start over 2,000 of each kind: \(small)\nstart over \(Self.rows): \(large)")
        #expect(large.residentKiB < small.residentKiB + (5 << 10))
        #expect(large.finalResidentKiB < small.finalResidentKiB + (8 << 10))
        // After a crash the count and the check continue while the server is serving, perhaps on another processor.
        if hasCleanStop { #expect(large.processorMilliseconds < small.processorMilliseconds + 300) }
    }
}
