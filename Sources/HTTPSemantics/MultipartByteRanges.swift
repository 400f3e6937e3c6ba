/// The layout of a `multipart/byteranges` content (RFC 9110 §14.6): which bytes to send in which order.
package struct MultipartByteRanges: Sendable, Hashable {
    /// A part of the content.
    package enum Segment: Sendable, Hashable {
        /// These bytes as they are: delimiters and part headers.
        case bytes([UInt8])
        /// These bytes of the representation.
        case range(Range<Int64>)
    }

    /// The delimiter of the parts, without its dashes.
    package let boundary: String
    /// The complete content in order.
    package let segments: [Segment]
    /// The number of bytes in the complete content: the value of Content-Length.
    package let contentLength: Int64

    /// Creates the layout with the parts in the given order.
    ///
    /// - Parameters:
    ///   - boundary: 1…70 letters, digits, "-", "_", ".", "+" or "'", which need no quotes. It must not occur in the
    ///     content, so choose it at random, with 128 bits or more.
    ///   - ranges: Non-empty ranges within the representation. A single range is possible, but the response to a
    ///     request for a single range must not be multipart.
    ///   - size: The size of the representation in bytes.
    ///   - contentType: The Content-Type of every part; nil for none.
    /// - Returns: nil if an argument breaks these rules or the total exceeds `Int64`.
    package init?(boundary: String, ranges: [Range<Int64>], size: Int64, contentType: String? = nil) {
        guard (1...70).contains(boundary.utf8.count),
            boundary.utf8.allSatisfy({ $0.isLetter || $0.isDigit || "-_.+'".utf8.contains($0) }),
            !ranges.isEmpty, Fields.isValidValue(contentType ?? "")
        else { return nil }
        var segments: [Segment] = []
        var total: Int64 = 0
        for range in ranges {
            guard let contentRange = ContentRange(range: range, size: size) else { return nil }
            var head = segments.isEmpty ? "--\(boundary)\r\n" : "\r\n--\(boundary)\r\n"
            if let contentType { head += "Content-Type: \(contentType)\r\n" }
            head += "Content-Range: \(contentRange.serialized)\r\n\r\n"
            segments += [.bytes(Array(head.utf8)), .range(range)]
        }
        segments.append(.bytes(Array("\r\n--\(boundary)--\r\n".utf8)))
        for segment in segments {
            let (sum, overflows) = total.addingReportingOverflow(segment.count)
            guard !overflows else { return nil }
            total = sum
        }
        self.boundary = boundary
        self.segments = segments
        contentLength = total
    }

    /// The value of the response's Content-Type.
    package var contentType: String { "multipart/byteranges; boundary=\(boundary)" }
}

extension MultipartByteRanges.Segment {
    /// The number of bytes in this segment.
    package var count: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .range(let range): range.upperBound - range.lowerBound
        }
    }
}
