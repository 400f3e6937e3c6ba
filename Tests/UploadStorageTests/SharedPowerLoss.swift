import ObjectStorage
import PostgreSQL
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// A server of PostgreSQL and an object storage that lose power at the same time, after a number of steps of the store. A
/// step is a transaction or a request to the object storage. The object storage forgets what it has not confirmed.
final class SharedPowerLoss: Sendable {
    private struct State {
        var left: Int?
        var isWithoutPower = false
        /// The objects that exist although their clients got an error.
        var unconfirmed: [String] = []
        var faults: SeededGenerator
    }

    /// Whether the object storage also forgets confirmed objects, which it must not.
    private let forgetsConfirmed: Bool
    private let server: PostgreSQLCluster
    private let objects = MemoryObjectStore()
    private let state: Monitor<State>

    init(seed: UInt64, forgetsConfirmed: Bool = false) throws {
        self.forgetsConfirmed = forgetsConfirmed
        server = try PostgreSQLCluster(isDurable: true)
        state = Monitor(State(faults: SeededGenerator(seed: seed)))
        objects.setFault { [weak self] operation in self?.fault(operation) }
    }

    var isWithoutPower: Bool { state.withLock { $0.isWithoutPower } }

    /// Loses power after this number of steps.
    func losePower(inSteps count: Int) { state.withLock { $0.left = count } }

    func losePower() {
        let isFirst = state.withLock { state in
            defer { state.isWithoutPower = true }
            return !state.isWithoutPower
        }
        if isFirst { server.kill() }
    }

    private func step() {
        let isLast = state.withLock { state in
            guard let left = state.left else { return false }
            state.left = left > 0 ? left - 1 : nil
            return left == 0
        }
        if isLast { losePower() }
    }

    private func fault(_ operation: MemoryObjectStore.Operation) -> MemoryObjectStore.Fault? {
        step()
        return state.withLock { state in
            let number = Int.random(in: 0..<16, using: &state.faults)
            guard state.isWithoutPower || number < 2 else { return nil }
            guard case .put(let key, _) = operation, number.isMultiple(of: 2) else {
                return .fail(.unavailable("no power"))
            }
            state.unconfirmed.append(key)
            return .loseResponse
        }
    }

    /// Starts the servers again. An object whose storage was not confirmed may be missing after that.
    func restorePower(using generator: inout SeededGenerator) throws {
        let lost = state.withLock { state in
            (state.left, state.isWithoutPower) = (nil, false)
            defer { state.unconfirmed = [] }
            let candidates = forgetsConfirmed ? objects.contents.keys.sorted() : state.unconfirmed
            return candidates.filter { _ in generator.oneIn(2) }
        }
        objects.setFault { _ in nil }
        try objects.delete(lost)
        objects.setFault { [weak self] operation in self?.fault(operation) }
        try server.start()
        // The sessions of the nodes before have ended.
        _ = try server.query("UPDATE onward.node SET alive_until = '-infinity'")
    }

    /// Opens the store of another node.
    func open(_ configuration: StoreConfiguration) throws -> UploadStore {
        let uri = try DatabaseURI(parsing: server.uri())
        let database = Database(uri, connections: 4) { [weak self] _ in self?.step() }
        let node = try ClusterNode(database: database, control: Database(uri, connections: 2), name: "node")
        let ledger = PieceLedger()
        let limits = PieceLimits(maxSize: 1024, maxInlineSize: 128, minMemory: 128, memory: 64 << 10)
        let area = try ObjectBlobArea(node: node, objects: objects, ledger: ledger, limits: limits, writers: 2)
        return try UploadStore(
            catalog: ClusterCatalog(node: node, ledger: ledger, configuration: configuration), area: area,
            configuration: configuration)
    }

    /// The contents of all published files.
    func publishedContents(of store: UploadStore) throws -> [String: [UInt8]] {
        objects.setFault { _ in nil }
        var contents: [String: [UInt8]] = [:]
        for file in try store.catalog.files(after: "", limit: .max) {
            contents[file.name] = try store.publishedFile(name(file.name)).readAll()
        }
        return contents
    }
}

@Suite(.serialized, .enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct SharedPowerLossTests {
    private static let seeds =
        [SeededGenerator.runSeed] + (1...(PostgreSQLCluster.isRequired ? 40 : 1)).map { UInt64($0) }

    @Test(
        "OFF-10 OFF-18: no power loss of database and object storage destroys acknowledged state at another node",
        arguments: seeds)
    func histories(_ seed: UInt64) throws {
        let storage = try SharedPowerLoss(seed: seed)
        var history = CrashHistory(seed: seed)
        try history.run(on: storage)
        #expect(history.problems == [], "seed \(seed)")
    }

    @Test("a storage that loses what it has confirmed is detected")
    func forgetfulStorage() throws {
        let isNoticed = try (1...5).contains { (seed: UInt64) throws -> Bool in
            let storage = try SharedPowerLoss(seed: seed, forgetsConfirmed: true)
            var history = CrashHistory(seed: seed)
            do { try history.run(on: storage) } catch { return true }
            return !history.problems.isEmpty
        }
        #expect(isNoticed)
    }
}
