/// What else than a refusal and the end of the connection is right.
struct Leniency: OptionSet {
    let rawValue: Int

    /// The end of the request is known: the connection may stay open.
    static let goingOn = Leniency(rawValue: 1)
    /// What is wrong may be mended.
    static let success = Leniency(rawValue: 2)
    /// The length is a number: who can count so far waits for the content.
    static let waiting = Leniency(rawValue: 4)
}
