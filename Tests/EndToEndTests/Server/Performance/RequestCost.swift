import FoundationEssentials
import Glibc
import Testing

/// The work of the server for a request, in counts that do not depend on the speed and the load of the machine.
struct RequestCost {
    /// The system calls that synchronize with the disk. sync_file_range is not one of them: it only starts to write.
    static let synchronizations: Set<String> = ["fsync", "fdatasync", "syncfs"]

    /// Whether the executable is the debug build of this package, to which the numbers of the tests belong.
    static let isComparable = ["TSAN_OPTIONS", "ASAN_OPTIONS", "ONWARD_EXECUTABLE"].allSatisfy {
        ProcessInfo.processInfo.environment[$0] == nil
    }

    /// The number of each system call.
    var calls: [String: Double] = [:]
    /// The number of times that a thread of the server waited.
    var switches = 0.0
    var allocations = 0.0

    /// Measures `body`, which does `count` units of work on connections that stay open.
    ///
    /// Work in the background can only add to a count, so each count is the minimum of three measurements.
    init(
        of server: ServerProcess, allocations counter: AllocationCounter, units count: Int, _ body: () throws -> Void
    ) throws {
        // The first requests open files and fill caches.
        try body()
        for repetition in 0..<3 {
            let (allocationsBefore, switchesBefore) = (try counter.read(), try Self.switches(of: server))
            try body()
            let allocations = Double(try counter.read() - allocationsBefore) / Double(count)
            let switches = Double(try Self.switches(of: server) - switchesBefore) / Double(count)
            let tracer = try Tracer(counting: server)
            try body()
            let calls = try tracer.endCounting().mapValues { Double($0) / Double(count) }
            if repetition == 0 {
                (self.allocations, self.switches, self.calls) = (allocations, switches, calls)
            } else {
                self.allocations = min(self.allocations, allocations)
                self.switches = min(self.switches, switches)
                // A call that is missing in one measurement belongs to no request.
                self.calls = self.calls.reduce(into: [:]) { result, entry in
                    if let other = calls[entry.key] { result[entry.key] = min(entry.value, other) }
                }
            }
        }
    }

    /// The number of times that threads of the server have waited (`voluntary_ctxt_switches` of proc(5)).
    private static func switches(of server: ServerProcess) throws -> Int {
        let tasks = "/proc/\(server.process.identifier)/task"
        var sum = 0
        for task in try FileManager.default.contentsOfDirectory(atPath: tasks) {
            // The thread may have ended.
            let status = FileManager.default.contents(atPath: "\(tasks)/\(task)/status") ?? Data()
            for line in String(decoding: status, as: UTF8.self).split(separator: "\n")
            where line.hasPrefix("voluntary_ctxt_switches:") {
                sum += line.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 0
            }
        }
        return sum
    }
}

/// The maximum cost of a request.
struct CostLimit {
    /// The exact number of calls. Calls that are in neither list must not be made for each request.
    var exactly: [String: Int] = [:]
    /// The maximum number of calls whose number depends on time and on the state of caches.
    var atMost: [String: Double]
    /// The maximum of all system calls together.
    var calls: Double
    var synchronizations: Double
    var switches: Double
    var allocations: Double

    func check(_ cost: RequestCost, _ work: String, sourceLocation: SourceLocation = #_sourceLocation) {
        var differences: [String] = []
        func compare(_ name: String, _ value: Double, _ limit: Double) {
            if value > limit { differences.append("\(name): \(Self.text(value)), at most \(Self.text(limit)) before") }
        }
        for name in Set(cost.calls.keys).union(exactly.keys).sorted() {
            let value = cost.calls[name] ?? 0
            if let limit = atMost[name] {
                compare(name, value, limit)
            } else if value.rounded() != Double(exactly[name] ?? 0) {
                differences.append("\(name): \(Self.text(value)), exactly \(exactly[name] ?? 0) before")
            }
        }
        compare("all system calls", cost.calls.values.reduce(0, +), calls)
        let synchronizations = cost.calls.filter { RequestCost.synchronizations.contains($0.key) }
        compare("synchronizations", synchronizations.values.reduce(0, +), self.synchronizations)
        compare("context switches", cost.switches, switches)
        compare("allocations", cost.allocations, allocations)
        let all = cost.calls.sorted { $0.key < $1.key }.map { "\($0.key) \(Self.text($0.value))" }
        print(
            "\(work): \(all.joined(separator: ", ")); \(Self.text(cost.switches)) context switches, "
                + "\(Self.text(cost.allocations)) allocations")
        guard !differences.isEmpty else { return }
        Issue.record(
            """
            The cost of each \(work) has changed:
              \(differences.joined(separator: "\n  "))
            If it is lower now, or the new work is needed, write the new number into RequestCostTests.swift. To find the \
            cause: `scripts/bench .build/debug/onward counts` prints all counts; `strace -f -k -e trace=NAME -p PID` \
            shows who makes a call; `perf record -g -e context-switches -p PID` who waits; `ltrace -e malloc` or heaptrack \
            who allocates.
            """, sourceLocation: sourceLocation)
    }

    private static func text(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        return "\(hundredths / 100).\(hundredths % 100 / 10)\(hundredths % 10)"
    }
}
