extension CaseContext {
    /// Cancels what the case has begun, as far as the subject lets it; its answers do not matter any more.
    func cancelUploads() {
        for upload in uploads.prefix(20) {
            do {
                let connection = try RawConnection(
                    upload.endpoint, timeout: min(subject.timeout, .seconds(1)), transcript: Transcript(),
                    observer: Unobserved.shared)
                _ = try connection.exchange(cancellation(upload))
            } catch {
                return
            }
        }
        uploads = []
    }
}

/// The result is ignored.
private final class Unobserved: WireObserver, Sendable {
    static let shared = Unobserved()

    func observe(_ response: Response, to request: Request, at endpoint: Endpoint) {}
    func observe(_ interim: InterimResponse, to request: Request, at endpoint: Endpoint) {}
    func observe(anomaly: String, in transcript: Transcript) {}
}
