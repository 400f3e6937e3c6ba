import HTTPSemantics

/// The next step of a request.
package enum RequestStep {
    /// Pass the content and its end to this exchange. Only the first step of a request.
    case receive(any Exchange)
    /// Send this response; content that has not arrived yet is not needed.
    case respond(Response)
    /// Send this response of another server, without further fields; content that has not arrived yet is not needed.
    case forward(Response)
    /// Close the connection without a response.
    case drop

    static func respond(_ problem: ProblemDetails) -> RequestStep { .respond(Response(problem)) }

    static func respond(_ refusal: AuthorizationRefusal) -> RequestStep { .respond(Response(refusal)) }
}

/// How a request ended.
package enum RequestEnd: Sendable {
    case answered
    /// The client closed the connection, or the server closed it, for example because of a timeout.
    case interrupted
}

/// The handler of one request. The thread of the connection calls `receive` any number of times, `finish` at most once,
/// and then always `end`.
package protocol Exchange: AnyObject {
    /// Handles the next bytes of content, which are valid only during the call.
    /// - Returns: `nil` to continue with the content or its end.
    func receive(_ bytes: UnsafeRawBufferPointer) -> RequestStep?
    /// Handles the regular end of the content.
    func finish() -> RequestStep
    /// Called when the request ends, or when nothing more is passed to this exchange. It may be called twice.
    func end(_ end: RequestEnd)
    /// The time after which ``hasEarlyResponse`` is read again while content is awaited, in milliseconds; `nil` if
    /// ``hasEarlyResponse`` cannot become true while content is awaited.
    var checkInterval: Int32? { get }
    /// Whether ``check()`` has an interim or final response to send, or other work.
    var hasEarlyResponse: Bool { get }
    /// Sends the responses that the client can get before the content has ended. Called between calls of `receive`, and
    /// before `finish`.
    /// - Returns: `nil` to continue with the content or its end.
    func check() -> RequestStep?
}

extension Exchange {
    package var checkInterval: Int32? { nil }
    package var hasEarlyResponse: Bool { false }
    package func check() -> RequestStep? { nil }
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

    func receive(_ bytes: UnsafeRawBufferPointer) -> RequestStep? { refusal.map { .respond($0) } }
    func finish() -> RequestStep { .respond(answer()) }
    func end(_ end: RequestEnd) {}
}
