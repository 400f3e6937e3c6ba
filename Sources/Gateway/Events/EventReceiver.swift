import HTTPSemantics
import HTTPTransport
import SystemCalls
import UploadStorage

/// An event as it is sent in one attempt.
struct EventMessage: Sendable {
    var event: UploadEvent
    var source: String
    var secrets: [EventSecret]
    /// The time of the attempt, in seconds since 1970.
    var time: Int64

    var cloudEvent: CloudEvent { CloudEvent(event: event, source: source) }
}

/// Delivers events. Blocks its thread, and can be used on several threads.
protocol EventReceiver: Sendable, CustomStringConvertible {
    func deliver(_ message: EventMessage, isCanceled: () -> Bool) -> EventAttempt
}

/// How an attempt to deliver an event ended.
enum EventAttempt: Sendable, Hashable {
    case delivered
    /// A rejection concerns this event alone: other events may be accepted now.
    case failed(reason: String, retryAfter: Duration?, isRejection: Bool)

    static func failed(_ reason: String) -> EventAttempt {
        .failed(reason: reason, retryAfter: nil, isRejection: false)
    }

    /// A failure because there was no response within the time limit, or before the delivery was canceled.
    fileprivate static func unfinished(_ reason: String, _ timeout: Duration, isCanceled: Bool) -> EventAttempt {
        .failed(isCanceled ? "it was canceled" : "\(reason) within \(timeout.wholeSeconds) s")
    }
}

extension EventDestination {
    func receiver(timeout: Duration) -> any EventReceiver {
        switch self {
        case .destination(.url(let url)): EndpointReceiver(url, timeout: timeout)
        case .destination(.program(let path)): ProgramReceiver(path: path, timeout: timeout)
        case .function(let body): FunctionReceiver(body: body, timeout: timeout)
        }
    }
}

/// An HTTP endpoint.
private struct EndpointReceiver: EventReceiver {
    let url: DestinationURL
    private let timeout: Duration
    private let client: OriginClient

    init(_ url: DestinationURL, timeout: Duration) {
        self.url = url
        self.timeout = timeout
        client = OriginClient(url.origin, timeout: timeout)
    }

    var description: String { url.description }

    /// The maximum number of bytes of a response's content that are read. They are ignored.
    private static let maxContent = 64 << 10

    func deliver(_ message: EventMessage, isCanceled: () -> Bool) -> EventAttempt {
        let body = message.cloudEvent.body
        var fields = message.cloudEvent.fields(body: body, secrets: message.secrets, at: message.time)
        fields.append("User-Agent", "onward")
        let exchange = client.start(
            OriginRequest(
                method: .post, target: url.target, fields: fields,
                content: .range(from: 0, count: Int64(body.count)), source: BytesSource(body),
                isRepeatable: true))
        defer { exchange.cancel() }
        let deadline = SystemClock.deadline(in: timeout)
        let (_, result) = exchange.collect(atMost: Self.maxContent) {
            isCanceled() || SystemClock.monotonicNanoseconds() >= deadline
        }
        guard let head = exchange.head else {
            return result?.failure.map { EventAttempt.failed("\($0)") }
                ?? .unfinished("no response", timeout, isCanceled: isCanceled())
        }
        if head.status.isSuccessful { return .delivered }
        return .failed(
            reason: "the response has status \(head.status)", retryAfter: ForwardedMessage.retryAfter(head.fields),
            isRejection: head.status.isClientError && ![408, 429].contains(head.status.rawValue))
    }
}

/// A function of this process.
private struct FunctionReceiver: EventReceiver {
    let body: @Sendable (UploadEvent) async throws -> Void
    let timeout: Duration

    var description: String { "the function of this program" }

    func deliver(_ message: EventMessage, isCanceled: () -> Bool) -> EventAttempt {
        let outcome = Monitor<EventAttempt?>(nil)
        let event = message.event
        let task = Task { [body] in
            let result: EventAttempt
            do {
                try await body(event)
                result = .delivered
            } catch { result = .failed(reason: "\(error)", retryAfter: nil, isRejection: true) }
            outcome.withLock { $0 = result }
            outcome.notifyAll()
        }
        let deadline = SystemClock.deadline(in: timeout)
        while true {
            let now = SystemClock.monotonicNanoseconds()
            if let outcome = outcome.wait(until: min(deadline, now + 50_000_000), { $0 }) { return outcome }
            let isCanceled = isCanceled()
            if now >= deadline || isCanceled {
                task.cancel()
                return .unfinished("the function did not return", timeout, isCanceled: isCanceled)
            }
        }
    }
}

/// A program that is run once for each event.
private struct ProgramReceiver: EventReceiver {
    let path: String
    let timeout: Duration

    var description: String { path }

    func deliver(_ message: EventMessage, isCanceled: () -> Bool) -> EventAttempt {
        let run = ProgramRun(
            path,
            variables: [("ONWARD_EVENT_ID", message.event.id), ("ONWARD_EVENT_TYPE", message.cloudEvent.type)],
            input: .bytes(message.cloudEvent.body), timeout: timeout)
        let result = run.run(isCanceled: isCanceled)
        if result.outcome == .ended(.exited(0)) { return .delivered }
        let isRejection = if case .ended = result.outcome { true } else { false }
        return .failed(reason: "it \(result.summary)", retryAfter: nil, isRejection: isRejection)
    }
}
