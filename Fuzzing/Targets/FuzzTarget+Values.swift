import HTTPSemantics

extension FuzzTarget {
    /// Checks dates, media types, digests, entity tags and authorities: the serialized form of a value is parsed to the
    /// same value.
    static let values = FuzzTarget(
        name: "values",
        maxLength: 1024,
        dictionary: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "GMT", ":60",
            "sha-256=", "sha-512=", "W/\"", "text/plain", "; charset=", "[::1]", ":80", "*", "\"", "v6.",
        ],
        seeds: { generator in
            let texts = [
                "text/plain; charset=\"utf-8\"", "application/partial-upload", "a/b;c=d; e=\"f\\\"g\"",
                "W/\"x\", \"y\"", "*",
                "\"\"", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:, sha-512=::", "sha-256=10, sha-512=3",
                "localhost:8080", "[2001:db8::1]:443", "[v1.x:y]", "example.com", "100-continue",
                "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Fri, 31 Dec 9999 23:59:60 GMT",
            ]
            return texts.map { InputReader.input(784_111_777, $0) }
                + (0..<100).map { _ in
                    InputReader.input(
                        generator.number(),
                        HTTPDate(secondsSinceEpoch: .random(in: -70_000_000_000...260_000_000_000, using: &generator))
                            .serialized)
                }
        },
        check: { input throws(Violation) in
            var reader = InputReader(input)
            let now = HTTPDate(secondsSinceEpoch: reader.integer())
            try require(HTTPDate(parsing: now.serialized, relativeTo: now) == now, "\(now) differs after a round trip")
            let text = reader.text
            if let date = HTTPDate(parsing: text, relativeTo: now) {
                try require(
                    HTTPDate(parsing: date.serialized, relativeTo: now) == date, "\(date) differs after a round trip")
            }
            if let type = MediaType(parsing: text) {
                try require(
                    MediaType(parsing: type.serialized) == type, "\(type.serialized) differs after a round trip")
                try require(Fields.isValidValue(type.serialized), "\(type.serialized.debugDescription) may not be sent")
                try require(type.matches(type.essence), "\(type.essence) does not match itself")
            }
            if let tag = EntityTag(parsing: text) {
                try require(EntityTag(parsing: tag.serialized) == tag, "\(tag.serialized) differs after a round trip")
                try require(tag.weakMatches(tag) && tag.strongMatches(tag) != tag.isWeak, "\(tag.serialized)")
            }
            if let authority = Authority(parsing: text) {
                try require(
                    Authority(parsing: authority.serialized) == authority,
                    "\(authority.serialized) differs after a round trip")
            }
            let lines = reader.lines
            if let digests = DigestField(fieldLines: lines) {
                try require(
                    DigestField(fieldLines: [digests.serialized]) == digests,
                    "\(digests.serialized) differs after a round trip"
                )
            }
            if let weights = DigestPreferences(fieldLines: lines)?.weights {
                try require(weights.values.allSatisfy { (0...10).contains($0) }, "\(weights)")
            }
            _ = EntityTagCondition(fieldLines: lines)
        })
}
