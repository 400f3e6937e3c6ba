import HTTPSemantics

/// The CORS fields (Fetch standard) with which pages of every origin can use a scripted server, for clients in browsers.
enum CrossOriginAnswer {
    /// The fields of the response to a preflight, which allow everything that the page requests; `nil` if the request is
    /// not a preflight.
    static func preflightFields(_ head: RequestHead) -> [(String, String)]? {
        guard head.method == .options, head.fields.contains("Origin"),
            let method = head.fields["Access-Control-Request-Method"]
        else { return nil }
        let names = head.fields["Access-Control-Request-Headers"]
        return fields(head) + [("Access-Control-Allow-Methods", method), ("Access-Control-Max-Age", "600")]
            + (names.map { [("Access-Control-Allow-Headers", $0)] } ?? [])
    }

    /// The fields of every other response.
    static func fields(_ head: RequestHead) -> [(String, String)] {
        guard head.fields.contains("Origin") else { return [] }
        return [("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "*")]
    }
}
