import SystemCalls

/// What takes in the content of a response.
protocol BodySink: Sendable {
    /// Takes in all of `bytes`, the next in order. Called on the engine's thread.
    /// - Throws: what ends the exchange as ``TransportFailure/sinkFailed(_:)``.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno)
}
