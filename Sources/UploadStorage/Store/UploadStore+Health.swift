import SystemCalls

/// The last answer, kept for a second so that asking often costs nothing.
struct HealthProbe {
    var validUntil: Int64 = 0
    var health = Health(ready: true)
}

extension UploadStore {
    private static let validity: Int64 = 1_000_000_000

    /// Whether something new can be begun now: whether bytes and rows can be written, by trying, and whether there is more
    /// free space than has to be kept. Looked at once a second at most.
    public func health() -> Health {
        if registry.isClosed { return Health(ready: false, reasons: ["store-closed"]) }
        // Whoever asks while somebody tries waits for that answer.
        return healthProbe.withLock { probe in
            let now = SystemClock.monotonicNanoseconds()
            if now < probe.validUntil { return probe.health }
            probe.health = probeHealth()
            probe.validUntil = SystemClock.monotonicNanoseconds() + Self.validity
            return probe.health
        }
    }

    /// Whether the threads that make uploads durable come to what is queued now, by the deadline (monotonic nanoseconds).
    public func isAtWork(until deadline: Int64) -> Bool {
        let isDone = Monitor(false)
        let isQueued = acknowledging.enqueue {
            isDone.withLock { $0 = true }
            isDone.notifyAll()
        }
        return isQueued && isDone.wait(until: deadline) { $0 ? true : nil } ?? false
    }

    private func probeHealth() -> Health {
        var reasons: [String] = []
        do throws(Errno) { try area.probe() } catch { reasons.append("bytes-cannot-be-written") }
        do throws(StoreError) { try catalogue.commit(.probe) } catch { reasons.append("catalogue-cannot-be-written") }
        if let spaceShortage { reasons.append(StoreError.insufficientSpace(spaceShortage).code) }
        return Health(ready: reasons.isEmpty, reasons: reasons)
    }
}
