import ResumableTransfer

/// Which interruptions a task bridges by itself.
///
/// Apple promises that of "a momentary network interruption" of a transfer that can be resumed. All else is told at
/// once: a server that cannot be reached, or one that is silent for the request's timeout.
enum InterruptionPolicy {
    static func bridges(_ error: TransferError, canResume: Bool) -> Bool {
        canResume && error.code != .timedOut
    }
}
