import HTTPSemantics
import ResumableUpload

/// The exchange that serves a request, and its first step.
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

    /// Closes the connection without a response.
    static var dropped: StartedExchange { StartedExchange(AnsweredExchange(), .drop) }
}

/// A request whose response is determined by its head.
private final class AnsweredExchange: Exchange {
    func receive(_ bytes: UnsafeRawBufferPointer) -> NextStep { .proceed }
    func finish() -> NextStep { .drop }
    func end(_ end: RequestEnd) {}
}
