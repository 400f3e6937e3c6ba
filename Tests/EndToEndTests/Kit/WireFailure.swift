/// Why an exchange over the wire could not go on.
enum WireFailure: Error, CustomStringConvertible {
    /// Nothing happened within the time limit; what had arrived until then.
    case timedOut(String)
    /// The server closed the connection; what it had sent that was not yet a message.
    case closed(leftover: String)
    case reset
    case malformed(String)
    /// A final response came where an interim one was awaited.
    case unexpectedFinal(Response)

    var description: String {
        switch self {
        case .timedOut(let what): "timed out: \(what)"
        case .closed(let leftover): "connection closed; not yet a message: \(leftover.debugDescription)"
        case .reset: "connection reset"
        case .malformed(let what): "malformed: \(what)"
        case .unexpectedFinal(let response): "final response instead of an interim one: \(response)"
        }
    }
}
