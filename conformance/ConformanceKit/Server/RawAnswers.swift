/// What came back for bytes with one request, and another one behind its content.
struct RawAnswers {
    /// Nil where the connection ended, or may wait for more content.
    var first: Response?
    var second: Response?
    /// How many there were, the ones that could not be read included.
    var count = 0
    /// Whether the connection ended behind the first.
    var isEnded = false
}
