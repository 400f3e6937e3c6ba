import FoundationEssentials
import HTTPSemantics

extension Response {
    /// Creates a response whose content is a value as JSON.
    /// - Parameters:
    ///   - value: the value.
    ///   - status: the status code.
    ///   - encoder: the encoder, for other settings than the default.
    /// - Throws: the error of the encoder, if the value cannot be expressed in JSON.
    public static func json(
        _ value: some Encodable, status: Status = .ok, using encoder: JSONEncoder = JSONEncoder()
    ) throws -> Response {
        Response(
            status: status, fields: ["Content-Type": "application/json"], content: Array(try encoder.encode(value)))
    }

    /// Creates a response whose content is a text in UTF-8.
    /// - Parameters:
    ///   - text: the content.
    ///   - status: the status code.
    public static func text(_ text: String, status: Status = .ok) -> Response {
        Response(
            status: status, fields: ["Content-Type": "text/plain; charset=utf-8"], content: Array(text.utf8))
    }
}
