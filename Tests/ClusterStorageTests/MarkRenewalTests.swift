import ClusterStorage
import TestSupport
import Testing

/// Processes of two copies of a database change the mark of one object, in random histories with interruptions and
/// requests that arrive late.
private struct MarkHistory {
    private struct Process {
        var database: Int
        var renewal: MarkRenewal
        /// The mark that was read from the object, and when.
        var read: (mark: Int, at: Int64)?
        var lastTick: Int64
    }

    private var generator: SeededGenerator
    private let times: MarkRenewal.Times
    /// The time from reading the object to the end of a request that stores a mark.
    private let claimTime: Int64 = 20
    private var now: Int64 = 0
    private var lastMark = 1
    private var object = 1
    private var databases: [[(mark: Int, addedAt: Int64)]] = [[(1, -1000)]]
    private var processes: [Process] = []
    private var requests: [(mark: Int, end: Int64)] = []
    /// Whether the processes of the original do their work in time, at least once in a minute.
    private let isPunctual: Bool
    /// The databases whose processes were allowed to delete, in the order of time without repetitions.
    private(set) var deletions: [Int] = []
    /// The databases whose processes have found an unknown mark.
    private(set) var refusals: Set<Int> = []

    init(seed: UInt64, times: MarkRenewal.Times, isPunctual: Bool) {
        (generator, self.times, self.isPunctual) = (SeededGenerator(seed: seed), times, isPunctual)
        addProcesses(of: 0)
    }

    private mutating func addProcesses(of database: Int) {
        for _ in 0..<3 {
            processes.append(Process(database: database, renewal: MarkRenewal(times: times), lastTick: now))
        }
    }

    mutating func copyDatabase() {
        databases.append(databases[0])
        addProcesses(of: 1)
    }

    mutating func failOver(lag: Int64) { databases[0].removeAll { $0.addedAt > now - lag } }

    mutating func run(for time: Int64) {
        let end = now + time
        while now < end {
            now += Int64.random(in: 0...4, using: &generator)
            requests.removeAll { $0.end < now }
            for index in processes.indices where isPunctual && processes[index].database == 0 {
                if now - processes[index].lastTick >= 60 {
                    processes[index].read = nil
                    read(index)
                    decide(index)
                    deliver(requests.count - 1)
                }
            }
            let index = Int.random(in: processes.indices, using: &generator)
            if generator.oneIn(3) {
                deliver(requests.isEmpty ? -1 : Int.random(in: requests.indices, using: &generator))
            } else if generator.oneIn(200), !isPunctual || processes[index].database == 1 {
                // The process is killed; its request may still arrive. Another one starts.
                processes[index] = Process(
                    database: processes[index].database, renewal: MarkRenewal(times: times), lastTick: now)
            } else if processes[index].read == nil {
                read(index)
            } else {
                decide(index)
            }
        }
    }

    private mutating func read(_ index: Int) { processes[index].read = (object, now) }

    private mutating func deliver(_ index: Int) {
        guard requests.indices.contains(index) else { return }
        object = requests.remove(at: index).mark
    }

    private mutating func decide(_ index: Int) {
        guard let (mark, readAt) = processes[index].read else { return }
        processes[index].read = nil
        processes[index].lastTick = now
        let database = processes[index].database
        guard let number = databases[database].firstIndex(where: { $0.mark == mark }) else {
            refusals.insert(database)
            processes[index].renewal.foundNone()
            return
        }
        func next(_ history: inout Self) -> MarkRenewal.Step {
            history.processes[index].renewal.found(
                Int64(number), last: Int64(history.databases[database].count - 1), at: history.now)
        }
        var step = next(&self)
        if step == .add {
            lastMark += 1
            databases[database].append((lastMark, now))
            step = next(&self)
        }
        if step == .store, let last = databases[database].last { requests.append((last.mark, readAt + claimTime)) }
        if now <= readAt + claimTime, processes[index].renewal.allowsDeletion(at: now), deletions.last != database {
            deletions.append(database)
        }
    }
}

@Suite("The mark of the database in the object storage")
struct MarkRenewalTests {
    private static let times = MarkRenewal.Times(observation: 300, confirmation: 60)
    private static let seeds = 1...UInt64(200)

    /// The number of histories with a property.
    private func count(
        _ times: MarkRenewal.Times, isPunctual: Bool = false, _ body: (inout MarkHistory) -> Bool
    ) -> Int {
        Self.seeds.count { seed in
            var history = MarkHistory(seed: seed, times: times, isPunctual: isPunctual)
            return body(&history)
        }
    }

    /// Whether the processes of two copies delete objects in turn, or are refused both.
    private func overlaps(_ history: inout MarkHistory) -> Bool {
        history.run(for: 600)
        history.copyDatabase()
        history.run(for: 2000)
        return history.deletions.count > 2 || history.refusals.count > 1
    }

    @Test("processes of two copies never delete objects in turn, and one copy continues")
    func exclusion() {
        #expect(count(Self.times, overlaps) == 0)
        // If the rules allowed no time for late requests, two copies would delete objects.
        #expect(count(.init(observation: 0, confirmation: 0), overlaps) > 0)
    }

    /// Whether a copy deletes objects, or ends the original, whose processes are running.
    private func harms(_ history: inout MarkHistory) -> Bool {
        history.run(for: 800)
        history.copyDatabase()
        history.run(for: 1200)
        return history.refusals != [1] || history.deletions != [0]
    }

    @Test("a copy ends, and not the original whose processes are running")
    func original() {
        #expect(count(Self.times, isPunctual: true, harms) == 0)
        // Without the time for observation the copy can end the original.
        #expect(count(.init(observation: 0, confirmation: 60), isPunctual: true, harms) > 0)
    }

    /// Whether a process finds an unknown mark although there is no copy, or whether no process may delete objects.
    private func locksOut(_ history: inout MarkHistory, lag: Int64) -> Bool {
        history.run(for: 1200)
        history.failOver(lag: lag)
        history.run(for: 1200)
        return !history.refusals.isEmpty || history.deletions != [0]
    }

    @Test("without a copy no interruption, and no failover that loses less than a minute, makes the mark unknown")
    func interruptions() {
        #expect(count(Self.times) { locksOut(&$0, lag: 0) } == 0)
        #expect(count(Self.times) { locksOut(&$0, lag: 59) } == 0)
        // A failover that loses minutes does, like an older copy.
        #expect(count(Self.times) { locksOut(&$0, lag: 300) } > 0)
    }
}
