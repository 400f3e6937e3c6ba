/// The expectation in the Expect field (RFC 9110 §10.1.1).
package enum Expectation: Sendable, Hashable {
    case none
    /// `100-continue`: the client sends the content after a 100 or final response.
    case continue100
    /// Anything else: answer 417.
    case unsupported

    /// Reads all Expect lines; names are compared without regard to case, and empty elements are skipped.
    ///
    /// - Parameter version: Of the request: `100-continue` in HTTP/1.0 must be ignored.
    package init(fields: Fields, version: ProtocolVersion = .http11) {
        var scanner = FieldValueScanner(fields.values("Expect").joined(separator: ", "))
        // An element with an argument or parameter is another expectation.
        guard let names = scanner.list(of: { $0.token() }),
            names.allSatisfy({ $0.equalsIgnoringASCIICase("100-continue") })
        else {
            self = .unsupported
            return
        }
        self = names.isEmpty || version < .http11 ? .none : .continue100
    }
}
