import SystemCalls

/// Clients that run at the same time, each on its own thread.
enum ConcurrentClients {
    /// Runs `body` for 0 ..< `count`, waits for all of them and returns their results, in order.
    /// - Throws: If clients failed, the error of the client with the smallest number among them.
    static func run<Value: Sendable>(
        _ count: Int, _ body: @escaping @Sendable (Int) throws -> Value
    ) throws -> [Value] {
        let results = Monitor<[Int: Result<Value, any Error>]>([:])
        var threads: [WorkerThread] = []
        defer { for thread in threads { thread.join() } }
        for number in 0..<count {
            threads.append(
                try WorkerThread(name: "client-\(number)") {
                    let result = Result { try body(number) }
                    results.withLock { $0[number] = result }
                })
        }
        for thread in threads { thread.join() }
        return try results.withLock { results in try (0..<count).compactMap { try results[$0]?.get() } }
    }
}
