/// Behavior that is also correct, in addition to a refusal after which the server closes the connection.
struct Leniency: OptionSet {
    let rawValue: Int

    /// The connection may stay open, because the end of the request is known.
    static let openConnection = Leniency(rawValue: 1)
    /// The request may succeed, because the server may repair it.
    static let success = Leniency(rawValue: 2)
    /// The server may wait for the content, because the length is a valid number.
    static let waiting = Leniency(rawValue: 4)
}
