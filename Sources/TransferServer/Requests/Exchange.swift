import HTTPSemantics

/// What is to happen next with a request.
enum NextStep {
    /// Go on with the content, or with its end.
    case proceed
    /// This is the answer; content that still comes is not wanted.
    case reply(Reply)
    /// Close the connection without an answer.
    case drop
}

/// How a request ended.
enum RequestEnd: Sendable {
    case answered
    /// The client went away, was too slow, or the connection was taken from it.
    case interrupted
}

/// One request while it is served. All calls come from its connection's thread, in this order: any number of `receive`,
/// at most one `finish`, and always one `end`.
protocol Exchange: AnyObject {
    /// The next bytes of content; they are gone when this returns.
    func receive(_ bytes: UnsafeRawBufferPointer) -> NextStep
    /// The content ended as its framing says.
    func finish() -> NextStep
    func end(_ end: RequestEnd)
}

/// An exchange that answers when the content has ended, which it ignores or refuses.
final class DeferredExchange: Exchange {
    private let refusal: Reply?
    private let answer: () -> Reply

    /// - Parameter refusal: the answer where there is any content; `nil`: it is ignored.
    init(_ refusal: Reply? = nil, _ answer: @escaping () -> Reply) {
        self.refusal = refusal
        self.answer = answer
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> NextStep { refusal.map { .reply($0) } ?? .proceed }
    func finish() -> NextStep { .reply(answer()) }
    func end(_ end: RequestEnd) {}
}
