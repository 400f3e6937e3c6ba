import HTTPSemantics

/// A final response as a value. The response of a target resource to an upload is stored and can be sent again.
///
/// `content` has the bytes of the body. `Content-Length`, `Date` and `Connection` are not in `fields`.
public struct FinalResponse: Sendable, Hashable {
    /// The status code.
    public var status: Status
    /// The header section, without `Content-Length`, `Date` and `Connection`.
    public var fields: Fields
    /// The content.
    public var content: [UInt8]

    /// Creates a response.
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
