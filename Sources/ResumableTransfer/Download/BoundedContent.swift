import SystemCalls

/// Keeps the content of a response that is no representation, up to a bound where it ends the exchange.
final class BoundedContent: BodySink {
    private let limit: Int
    private let content = Monitor<[UInt8]>([])

    /// - Parameter limit: bytes.
    init(limit: Int) { self.limit = limit }

    var bytes: [UInt8] { content.withLock { $0 } }

    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        let isFull = content.withLock { content in
            content.append(contentsOf: bytes.prefix(limit - content.count))
            return content.count >= limit
        }
        if isFull { throw .fileTooLarge }
    }
}
