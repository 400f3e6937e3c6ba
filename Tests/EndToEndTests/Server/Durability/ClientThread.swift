import SystemCalls

/// A thread, and the error with which it ended.
struct ClientThread {
    private let thread: WorkerThread
    private let errors: Monitor<[any Error]>

    init(_ name: String, _ body: @escaping @Sendable () throws -> Void) throws {
        let errors = Monitor<[any Error]>([])
        self.errors = errors
        thread = try WorkerThread(name: name) {
            do { try body() } catch { errors.withLock { $0.append(error) } }
        }
    }

    func awaitEnd() -> [any Error] {
        thread.join()
        return errors.withLock { $0 }
    }
}
