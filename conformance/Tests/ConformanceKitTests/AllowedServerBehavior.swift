/// Unusual behavior of the reference server that HTTP and the draft allow: no case may report it as wrong.
enum AllowedServerBehavior: CaseIterable, Sendable {
    /// NUL and CR in a field value are replaced by spaces.
    case replacesControls
    /// The connection stays open after the refusal of a request whose Host is missing or invalid.
    case keepsConnectionWithoutHost
    /// The server waits for content of any length, even beyond 64 bits.
    case acceptsHugeLengths
    /// The connection stays open after the refusal of an unknown transfer coding, or of a repeated chunked coding.
    case skipsCodings
    /// A repeated chunked coding is handled as one.
    case normalizesCodings
    /// A line of the chunked coding may end with LF alone, as with HAProxy 2.6 in front of the server.
    case acceptsLineFeeds
    /// Every response closes its connection.
    case endsConnections
    /// The connection is reset if content of a refused request was not read.
    case resetsConnections
    /// In versions 5 and 6 an upload is complete at its declared length.
    case completesAtLength
}
