import HTTPSemantics

/// A request as a ``ScriptedServer`` received it.
struct ReceivedRequest: Sendable {
    let method: String
    let target: String
    let fields: Fields
    /// The number of its connection, from 1.
    let connection: Int
    let arrivedAt: ContinuousClock.Instant
    /// The number of bytes of content that the script has read, without the framing of chunks.
    var contentCount: Int64 = 0
    /// The first bytes of the content, at most ``ScriptedServer/keptContent``.
    var content: [UInt8] = []
    /// Whether the script has read the content to its end.
    var hasReadContent = false
}
