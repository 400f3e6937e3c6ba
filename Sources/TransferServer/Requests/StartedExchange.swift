import HTTPSemantics
import ResumableUpload

/// What serves a request from now on, and what is to happen first.
struct StartedExchange {
    let exchange: any Exchange
    let step: NextStep

    init(_ exchange: any Exchange, _ step: NextStep = .proceed) {
        self.exchange = exchange
        self.step = step
    }

    init(_ reply: Reply) { self.init(AnsweredExchange(), .reply(reply)) }

    init(_ problem: ProblemDetails) { self.init(Reply(problem)) }

    init(_ refusal: AuthorizationRefusal) { self.init(Reply(refusal.problem, fields: refusal.fields)) }

    /// Closes the connection without an answer.
    static var dropped: StartedExchange { StartedExchange(AnsweredExchange(), .drop) }
}

/// A request whose answer was known from its head.
private final class AnsweredExchange: Exchange {
    func receive(_ bytes: UnsafeRawBufferPointer) -> NextStep { .proceed }
    func finish() -> NextStep { .drop }
    func end(_ end: RequestEnd) {}
}
