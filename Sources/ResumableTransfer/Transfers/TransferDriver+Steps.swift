import ResumableUpload
import SystemCalls

/// The steps of a transfer in which no request is sent.
extension TransferDriver {
    /// Waits for the next attempt, unless the caller decides that there is none.
    func wait(_ proposed: Duration, because reason: ClientInterruption) async throws(TransferError) {
        isResuming = true
        let error = error(of: reason)
        if operation.isDeleting {
            control.events.send(.interrupted(error, retryIn: proposed))
            // A stop was requested before, so nothing else ends this wait.
            try? await Task.sleep(for: proposed)
            return
        }
        progress.setWaiting(true)
        defer { progress.setWaiting(false) }
        let delay = try await delay(proposed, after: error)
        if control.stop != nil { return }
        control.events.send(.interrupted(error, retryIn: delay))
        log.write(
            .warning, "The \(Operation.noun) was interrupted.",
            error.metadata.merging(["attempt": "\(operation.attempts)", "delay": "\(Double(delay.nanoseconds) / 1e9)"])
            { $1 })
        await control.sleep(for: delay)
    }

    /// The delay before the next attempt.
    /// - Throws: `error`, if the caller decides that there is no other attempt.
    private func delay(_ proposed: Duration, after error: TransferError) async throws(TransferError) -> Duration {
        guard let shouldRetry = client.configuration.shouldRetry else { return proposed }
        let attempt = operation.attempts
        let decision = await control.result { await shouldRetry(error, attempt, proposed) }
        switch decision {
        case .success(.retry(let delay)): return max(delay, .zero)
        // If a stop was requested, the transfer ends as that request requires.
        case .success(.stop) where control.stop == nil: throw error
        case .success(.stop), .failure: return .zero
        }
    }
}
