/// What the Expect field asks for (RFC 9110 §10.1.1).
package enum Expectation: Sendable, Hashable {
    case none
    /// `100-continue`: the client waits with the content for 100 or a final response.
    case continue100
    /// Anything else: answer 417.
    case unsupported

    /// Reads all Expect lines; names are compared without regard to case, and empty elements are skipped.
    ///
    /// - Parameter version: Of the request: `100-continue` in HTTP/1.0 must be ignored.
    package init(fields: Fields, version: ProtocolVersion = .http11) {
        var scanner = FieldValueScanner(fields.values("Expect").joined(separator: ", "))
        // With any argument or parameter the element is another expectation, so the token must be all of it.
        guard let names = scanner.list(of: { $0.token() }),
            names.allSatisfy({ $0.equalsIgnoringASCIICase("100-continue") })
        else {
            self = .unsupported
            return
        }
        self = names.isEmpty || version < .http11 ? .none : .continue100
    }
}
