/// The responses to bytes that contain a request and another request after its content.
struct RawAnswers {
    /// The first response; nil if the connection ended without a response, or if no response arrived and the server may
    /// wait for more content.
    var first: Response?
    var second: Response?
    /// The number of responses, including those that could not be read.
    var count = 0
    /// Whether the connection ended after the first response.
    var isEnded = false
}
