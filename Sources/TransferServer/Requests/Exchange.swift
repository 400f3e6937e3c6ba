import HTTPSemantics

/// The first step of a request whose head is complete.
enum FirstStep {
    /// Pass the content and its end to this exchange.
    case receive(any Exchange)
    /// Send this response; content is not needed.
    case respond(Response)
    /// Close the connection without a response.
    case drop

    static func respond(_ problem: ProblemDetails) -> FirstStep { .respond(Response(problem)) }

    static func respond(_ refusal: AuthorizationRefusal) -> FirstStep {
        .respond(Response(refusal))
    }
}

/// The next step of a request whose content is received.
enum NextStep {
    /// Continue with the content or its end.
    case proceed
    /// Send this response; remaining content is not needed.
    case respond(Response)
    /// Close the connection without a response.
    case drop
}

/// How a request ended.
enum RequestEnd: Sendable {
    case answered
    /// The client closed the connection, or the server closed it, for example because of a timeout.
    case interrupted
}

/// The handler of one request. The thread of the connection calls `receive` any number of times, `finish` at most once,
/// and then always `end`.
protocol Exchange: AnyObject {
    /// Handles the next bytes of content, which are valid only during the call.
    func receive(_ bytes: UnsafeRawBufferPointer) -> NextStep
    /// Handles the regular end of the content.
    func finish() -> NextStep
    func end(_ end: RequestEnd)
    /// The time after which ``hasEarlyResponse`` is read again while content is awaited, in milliseconds; `nil` if it
    /// cannot become true then.
    var checkInterval: Int32? { get }
    /// Whether ``check()`` has an interim or final response to send, or other work.
    var hasEarlyResponse: Bool { get }
    /// Sends the responses that the client can get before the content has ended. Called between calls of `receive`, and
    /// before `finish`.
    func check() -> NextStep
}

extension Exchange {
    var checkInterval: Int32? { nil }
    var hasEarlyResponse: Bool { false }
    func check() -> NextStep { .proceed }
}

/// An exchange that responds at the end of the content, which it ignores or rejects.
final class DeferredExchange: Exchange {
    private let refusal: Response?
    private let answer: () -> Response

    /// - Parameter refusal: the response if there is content; `nil`: content is ignored.
    init(_ refusal: Response? = nil, _ answer: @escaping () -> Response) {
        self.refusal = refusal
        self.answer = answer
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> NextStep { refusal.map { .respond($0) } ?? .proceed }
    func finish() -> NextStep { .respond(answer()) }
    func end(_ end: RequestEnd) {}
}
