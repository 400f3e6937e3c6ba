/// A single way in which the reference server does otherwise what HTTP and the draft leave open: no case may call it wrong.
enum Liberty: CaseIterable, Sendable {
    /// NUL and CR in a field value become spaces.
    case replacesControls
    /// The connection stays open after the refusal of a request whose Host is bad.
    case goesOnWithoutHost
    /// Content of any length is waited for.
    case countsBeyondNumbers
    /// The connection stays open after the refusal of codings that are chunked in the end.
    case skipsCodings
    /// Chunked twice is taken for once.
    case mendsCodings
    /// Every answer ends its connection.
    case endsConnections
    /// What was not read of a refused content resets the connection.
    case resetsConnections
    /// In versions 5 and 6 an upload is complete at its declared length.
    case completesAtLength
}
