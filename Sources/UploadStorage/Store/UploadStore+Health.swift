import SystemCalls

extension UploadStore {
    /// Returns whether new uploads can be accepted. A check writes test data to the blob area and to the catalog, and
    /// compares the free space with the space that must stay free. One thread does this, at most once a second.
    ///
    /// Returns within ``HealthProbe/timeout`` even if the disk does not respond; the reason is then
    /// `store-check-stuck`.
    package func health() -> Health {
        health(until: SystemClock.monotonicNanoseconds() + HealthProbe.timeout, isLastAccepted: true)
            ?? HealthProbe.stuck
    }

    /// Returns the health for a watchdog; nil if the store is closed or stuck, which means that it makes no progress until
    /// the deadline (monotonic nanoseconds).
    ///
    /// With a shared catalog a store is never stuck: its threads wait for the database or the object storage, for many
    /// uploads one after the other, and a new process would have to wait, too.
    package func liveHealth(until deadline: Int64) -> Health? {
        if registry.isClosed { return nil }
        if catalog.isShared { return health() }
        return isResponsive(until: deadline) ? health(until: deadline, isLastAccepted: false) : nil
    }

    /// - Parameter isLastAccepted: whether the result of the last check is enough while another check is running.
    private func health(until deadline: Int64, isLastAccepted: Bool) -> Health? {
        if registry.isClosed { return Health(isReady: false, reasons: ["store-closed"]) }
        if let error = damage.withLock({ $0.error }) ?? catalog.damage {
            return Health(isReady: false, reasons: [error.code])
        }
        let (decision, checks) = healthProbe.withLock { probe in
            let now = SystemClock.monotonicNanoseconds()
            let decision = probe.decision(at: now, isLastAccepted: isLastAccepted)
            if decision == .check { probe.begin(at: now) }
            return (decision, probe.checks)
        }
        if case .answer(let health) = decision { return health }
        if decision == .check {
            let isQueued = healthCheck.enqueue { [self] in
                let health = checkHealth()
                healthProbe.withLock { $0.end(health, at: SystemClock.monotonicNanoseconds()) }
                healthProbe.notifyAll()
            }
            if !isQueued { return Health(isReady: false, reasons: ["store-closed"]) }
        }
        return healthProbe.wait(until: deadline) { probe in probe.checks > checks ? probe.last : nil }
    }

    /// Returns whether one of the threads that make uploads durable ends its work before the deadline.
    private func isResponsive(until deadline: Int64) -> Bool {
        let isDone = Monitor(false)
        let isQueued = context.acknowledging.enqueue(isFirst: true) {
            isDone.withLock { $0 = true }
            isDone.notifyAll()
        }
        return isQueued && isDone.wait(until: deadline) { $0 ? true : nil } ?? false
    }

    /// The numbers of the shortage if there is too little free space for new uploads; `nil` if there is enough, or if
    /// the free space is unknown.
    package var spaceShortage: SpaceShortage? {
        guard let space = try? context.area.space() else { return nil }
        return context.shortage(free: space.free, kept: context.configuration.effectiveMinFree(total: space.total))
    }

    private func checkHealth() -> Health {
        var reasons: [String] = []
        do throws(Errno) { try area.probe() } catch { reasons.append("bytes-cannot-be-written") }
        do throws(StoreError) { try catalog.commit(.probe) } catch { reasons.append("catalogue-cannot-be-written") }
        if !catalog.isReceivingNotifications { reasons.append("notifications-missing") }
        if let spaceShortage { reasons.append(StoreError.insufficientSpace(spaceShortage).code) }
        return Health(isReady: reasons.isEmpty, reasons: reasons)
    }
}

/// Decides which request for the store's health runs a check, and which result the other requests get. It is a value:
/// the caller runs the check, and waits.
///
/// One check runs at a time, and its result is used for a second. While a check runs, other requests get the last
/// result immediately. If a check has not ended after ``timeout``, the store is not ready.
struct HealthProbe {
    enum Decision: Equatable {
        case answer(Health)
        /// No check is running, and the last result is too old: run a check, and wait for it.
        case check
        /// Wait for the check that is running.
        case wait
    }

    /// The time in nanoseconds for which a result is used.
    static let validity: Int64 = 1_000_000_000
    /// The time in nanoseconds after which a running check counts as stuck.
    static let timeout: Int64 = 3_000_000_000
    static let stuck = Health(isReady: false, reasons: ["store-check-stuck"])

    /// The result of the last check that ended.
    private(set) var last: Health?
    private(set) var checks = 0
    private var validUntil = Int64.min
    private var startedAt: Int64?

    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - isLastAccepted: whether the last result is enough while a check is running.
    func decision(at now: Int64, isLastAccepted: Bool) -> Decision {
        if let startedAt {
            guard isLastAccepted else { return .wait }
            if now - startedAt >= Self.timeout { return .answer(Self.stuck) }
            return last.map { .answer($0) } ?? .wait
        }
        if let last, now < validUntil { return .answer(last) }
        return .check
    }

    mutating func begin(at now: Int64) { startedAt = now }

    mutating func end(_ health: Health, at now: Int64) {
        last = health
        checks += 1
        startedAt = nil
        validUntil = now + Self.validity
    }
}

/// Whether the store can accept new uploads now, and if not, why.
public struct Health: Sendable, Hashable {
    /// Whether new uploads can be accepted.
    public var isReady: Bool
    /// The reasons why the store is not ready, each a stable word; empty if it is ready.
    public var reasons: [String]

    /// Creates a result; `reasons` is empty if the store is ready.
    public init(isReady: Bool, reasons: [String] = []) {
        self.isReady = isReady
        self.reasons = reasons
    }
}

/// Damage of the catalog that was found while the store is in use.
struct CatalogDamage {
    var error: StoreError?
    var report: (@Sendable (StoreError) -> Void)?
}

extension UploadStore {
    /// Calls `report` once, when the catalog is found to be damaged; immediately if damage was found before. From then
    /// on the store is not ready and changes nothing; published files can still be read.
    package func onDamage(_ report: @escaping @Sendable (StoreError) -> Void) {
        let error = damage.withLock { damage in
            damage.report = report
            return damage.error
        }
        if let error { report(error) }
    }

    func reportDamage(_ error: StoreError) {
        let report = damage.withLock { damage -> (@Sendable (StoreError) -> Void)? in
            if damage.error != nil { return nil }
            damage.error = error
            return damage.report
        }
        report?(error)
    }

    /// Reports the damage that a request found, if there is any.
    func reportCatalogDamage() { if let error = catalog.damage { reportDamage(error) } }
}

/// The uploads whose acknowledged bytes are missing, and the closure that is called for them.
struct Losses {
    /// The uploads that were found before ``UploadStore/onLoss(_:)`` was called, for example by recovery.
    var unreported: [UploadID] = []
    /// The closure of ``UploadStore/onLoss(_:)``.
    var report: (@Sendable (UploadID) -> Void)?
}

extension UploadStore {
    /// Calls `report` with each upload that became invalid because acknowledged bytes were missing, including uploads
    /// for which this was found when the store was opened. `report` runs on the thread that finds the loss, and must
    /// not block.
    package func onLoss(_ report: @escaping @Sendable (UploadID) -> Void) {
        let unreported = context.losses.withLock { losses in
            defer { losses = Losses(report: report) }
            return losses.unreported
        }
        for upload in unreported { report(upload) }
    }
}
