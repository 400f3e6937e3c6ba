extension CaseContext {
    /// Cancels the uploads that the case created. Responses and failures are ignored.
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

/// An observer that ignores every response.
private final class Unobserved: WireObserver, Sendable {
    static let shared = Unobserved()

    func observe(_ response: Response, to request: Request, at endpoint: Endpoint) {}
    func observe(_ interim: InterimResponse, to request: Request, at endpoint: Endpoint) {}
    func observe(anomaly: String, in transcript: Transcript) {}
}
