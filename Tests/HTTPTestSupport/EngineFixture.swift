import HTTPSemantics
import HTTPTransport
import SystemCalls

/// An engine, and requests for it.
package final class EngineFixture: Sendable {
    package let engine = TransportEngine()

    /// An operation that ends without waiting takes less than this time even on a busy machine. The timeouts of gates
    /// and of collected content are longer.
    package static let promptLimit = Duration.seconds(300)

    /// Content that is much larger than the kernel's buffers.
    package static let muchContent = [UInt8](repeating: 0x61, count: 40_000_000)

    package init() {}

    deinit { engine.shutDown() }

    package func request(
        _ method: String, _ uri: String, _ fields: Fields = [:], _ content: SourceContent? = nil,
        receive: @escaping @Sendable (ClientResponseHead) -> BodyDisposition = { _ in
            .collect(limit: 1 << 20, within: .seconds(600))
        }
    ) -> TransportRequest {
        TransportRequest(
            uri: uri, method: Method(rawValue: method), fields: fields, content: content?.content ?? .none,
            source: content?.source, stallTimeout: .seconds(120),
            settings: TransportSettings(
                caFile: nil, proxy: "", httpVersion: .automatic, connectTimeout: .seconds(30)), receive: receive)
    }

    /// Runs a request to its end.
    package func run(_ request: TransportRequest) async -> TransportResult { await engine.start(request).result() }

    /// Runs a request to its end and calls `event` for each event.
    package func follow(
        _ request: TransportRequest, _ event: (TransportEvent, TransportExchange) -> Void
    ) async -> TransportResult {
        let exchange = engine.start(request)
        for await next in exchange.events { event(next, exchange) }
        return await exchange.result()
    }
}

/// A part of a source as the content of a request.
package struct SourceContent: Sendable {
    package let source: MemorySource
    package let content: RequestContent
}

/// Bytes in memory as a source, which can fail at an offset and records what was read.
package final class MemorySource: UploadSource {
    package let bytes: [UInt8]
    package let length: Int64?
    private let failsAt: Int64
    private let error: SourceError
    private let readEnd = Monitor<Int64>(0)

    package init(
        _ bytes: [UInt8], hasLength: Bool = true, failsAt: Int64 = .max, _ error: SourceError = .system(.inputOutput)
    ) {
        self.bytes = bytes
        length = hasLength ? Int64(bytes.count) : nil
        self.failsAt = failsAt
        self.error = error
    }

    /// The end of the bytes read so far.
    package var position: Int64 { readEnd.withLock { $0 } }

    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        let end = min(offset + Int64(buffer.count), Int64(bytes.count), failsAt)
        guard offset < end else {
            if offset >= failsAt { throw error }
            return 0
        }
        bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<Int(end)])) }
        readEnd.withLock { $0 = max($0, end) }
        return Int(end - offset)
    }

    package func acknowledged(upTo offset: Int64) {}

    /// A part of the source as content.
    package func content(from start: Int64 = 0, count: Int64? = nil, atMost: Int64? = nil) -> SourceContent {
        let content =
            switch count {
            case 0: RequestContent.empty
            case let count?: RequestContent.range(from: start, count: count)
            case nil: RequestContent.remaining(from: start, atMost: atMost)
            }
        return SourceContent(source: self, content: content)
    }

    /// The complete source as content.
    package var completeContent: SourceContent { content(count: Int64(bytes.count)) }
}

/// Stores the bytes it receives, and fails if they exceed its capacity.
package final class MemorySink: BodySink {
    private let written = Monitor<[UInt8]>([])
    private let capacity: Int

    package init(capacity: Int = .max) { self.capacity = capacity }

    package var bytes: [UInt8] { written.withLock { $0 } }

    package func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        try written.withLock { written throws(Errno) in
            if written.count + bytes.count > capacity { throw Errno.noSpace }
            written.append(contentsOf: bytes)
        }
    }
}
