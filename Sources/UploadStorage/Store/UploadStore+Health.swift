import SystemCalls

extension UploadStore {
    /// Returns whether new uploads can be accepted. A check writes test data to the blob area and to the catalog, and
    /// compares the free space with the space that must stay free. One thread does this, at most once a second.
    ///
    /// Returns within ``HealthProbe/timeout`` even if the disk does not respond; the reason is then
    /// `store-check-stuck`.
    package func health() -> Health {
        health(until: SystemClock.monotonicNanoseconds() + HealthProbe.timeout, acceptsLast: true) ?? HealthProbe.stuck
    }

    /// Waits for a running check and returns its result; nil if it has not ended by the deadline (monotonic
    /// nanoseconds).
    package func health(until deadline: Int64) -> Health? { health(until: deadline, acceptsLast: false) }

    /// - Parameter acceptsLast: whether the result of the last check is enough while another check is running.
    private func health(until deadline: Int64, acceptsLast: Bool) -> Health? {
        if registry.isClosed { return Health(ready: false, reasons: ["store-closed"]) }
        if let error = damage.withLock({ $0.error }) ?? catalog.damage {
            return Health(ready: false, reasons: [error.code])
        }
        let (decision, checks) = healthProbe.withLock { probe in
            let now = SystemClock.monotonicNanoseconds()
            let decision = probe.decision(at: now, acceptsLast: acceptsLast)
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
            if !isQueued { return Health(ready: false, reasons: ["store-closed"]) }
        }
        return healthProbe.wait(until: deadline) { probe in probe.checks > checks ? probe.last : nil }
    }

    /// Returns whether the threads that make uploads durable begin the work that is queued now before the deadline
    /// (monotonic nanoseconds).
    package func isResponsive(until deadline: Int64) -> Bool {
        let isDone = Monitor(false)
        let isQueued = context.acknowledging.enqueue {
            isDone.withLock { $0 = true }
            isDone.notifyAll()
        }
        return isQueued && isDone.wait(until: deadline) { $0 ? true : nil } ?? false
    }

    private func checkHealth() -> Health {
        var reasons: [String] = []
        do throws(Errno) { try area.probe() } catch { reasons.append("bytes-cannot-be-written") }
        do throws(StoreError) { try catalog.commit(.probe) } catch { reasons.append("catalogue-cannot-be-written") }
        if let spaceShortage { reasons.append(StoreError.insufficientSpace(spaceShortage).code) }
        return Health(ready: reasons.isEmpty, reasons: reasons)
    }
}
