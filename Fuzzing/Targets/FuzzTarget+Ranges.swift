import HTTPSemantics

extension FuzzTarget {
    /// Checks Range, Content-Range and the layout of multipart/byteranges. An input is a size in eight bytes, then the
    /// field lines of Range or the value of Content-Range.
    static let ranges = FuzzTarget(
        name: "ranges",
        maxLength: 1024,
        dictionary: ["bytes=", "bytes ", "-", ",", "*/", "9223372036854775807", "9223372036854775806", "0-0"],
        seeds: { generator in
            (0..<200).map { index in
                let size = generator.number()
                if index % 4 == 0 {
                    return InputReader.input(size, "bytes \(generator.number())-\(generator.number())/\(size)")
                }
                let ranges = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
                    generator.pick([
                        "\(generator.number())-\(generator.number())", "\(generator.number())-",
                        "-\(generator.number())",
                        "0-", "", "5-4",
                    ])
                }
                return InputReader.input(
                    size, "bytes=" + ranges.joined(separator: generator.pick([",", ", ", " ,\t"])))
            }
        },
        check: { input throws(Violation) in
            var reader = InputReader(input)
            let size = reader.integer()
            let lines = reader.lines
            for size in [size, size & 0xFF, Int64(reader.remaining.count)] {
                if let set = ByteRangeSet(fieldLines: lines) { try checkResolution(of: set, size: size) }
            }
            if let range = ContentRange(parsing: reader.text) {
                try require(ContentRange(parsing: range.serialized) == range, "\(range) differs after a round trip")
                if let bytes = range.range {
                    try require(bytes.lowerBound >= 0 && !bytes.isEmpty, "\(range) is empty")
                    try require(bytes.upperBound <= range.size ?? .max, "\(range) ends after its size")
                }
            }
        })

    private static func checkResolution(of set: ByteRangeSet, size: Int64) throws(Violation) {
        guard case .satisfiable(let ranges) = set.resolve(size: size) else { return }
        try require((1...16).contains(ranges.count), "\(ranges.count) ranges instead of 1 to 16")
        var total: Int64 = 0
        for range in ranges {
            try require(
                range.lowerBound >= 0 && range.upperBound <= size && !range.isEmpty,
                "\(range) is empty or not within \(size) bytes")
            let (sum, overflows) = total.addingReportingOverflow(range.upperBound - range.lowerBound)
            try require(!overflows && sum <= size, "\(ranges) are more than \(size) bytes")
            total = sum
            let field = try require(ContentRange(range: range, size: size), "\(range) of \(size) has no Content-Range")
            try require(ContentRange(parsing: field.serialized) == field, "\(field) differs after a round trip")
        }
        guard let parts = MultipartByteRanges(boundary: "boundary", ranges: ranges, size: size, contentType: "a/b")
        else {
            // Only content that is too long for Content-Length has no layout.
            try require(size > .max - 4096, "\(ranges) of \(size) have no layout")
            return
        }
        try require(parts.segments.reduce(0) { $0 + $1.count } == parts.contentLength, "the total size is wrong")
    }
}
