import HTTPSemantics

/// The answer to a whole request as a value; what a target resource says of a representation is kept and given again.
///
/// `content` holds the body's bytes; `Content-Length`, `Date` and `Connection` are not part of `fields`.
public struct FinalResponse: Sendable, Hashable {
    public var status: Status
    public var fields: Fields
    public var content: [UInt8]

    public init(status: Status, fields: Fields = [:], content: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    /// A problem document (RFC 9457) with further fields.
    public init(_ problem: ProblemDetails, fields: Fields = [:]) {
        var fields = fields
        fields.set("Content-Type", ProblemDetails.mediaType)
        self.init(status: problem.status, fields: fields, content: problem.json())
    }
}
