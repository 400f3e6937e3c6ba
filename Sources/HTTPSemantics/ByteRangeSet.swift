/// The ranges in a Range field, unit "bytes" (RFC 9110 section 14.1, section 14.2).
///
/// The caller must ignore Range for methods other than GET (RFC 9110 section 14.2).
package struct ByteRangeSet: Sendable, Hashable {
    /// One `range-spec`. Positions above `Int64.max` become `Int64.max`, which is beyond every representation.
    enum Specification: Sendable, Hashable {
        /// The bytes from `first` to `last`, both included; `nil`: to the end.
        case positions(first: Int64, last: Int64?)
        /// The last `length` bytes.
        case suffix(length: Int64)
    }

    let specifications: [Specification]

    /// Parses the values of the Range lines, e.g. `["bytes=0-499, -500"]`.
    ///
    /// The result is `nil` if the field must be ignored: if there is no line or several lines, if the unit is not
    /// bytes, or if a member is malformed or its last position precedes its first. The unit's case is ignored, and so
    /// are empty list elements (RFC 9110 section 5.6.1.2).
    package init?(fieldLines: [String]) {
        guard fieldLines.count == 1 else { return nil }
        var scanner = FieldValueScanner(fieldLines[0].trimmingOptionalWhitespace)
        guard let unit = scanner.token(), unit.equalsIgnoringASCIICase("bytes"), scanner.consume("="),
            scanner.next?.isOptionalWhitespace == false,
            let specifications = scanner.list(of: ByteRangeSet.specification), !specifications.isEmpty
        else { return nil }
        self.specifications = specifications
    }

    private static func specification(_ scanner: inout FieldValueScanner) -> Specification? {
        if scanner.consume("-") {
            return scanner.digits().map { .suffix(length: clampedNumber($0)) }
        }
        guard let first = scanner.digits(), scanner.consume("-") else { return nil }
        guard let last = scanner.digits() else {
            return .positions(first: clampedNumber(first), last: nil)
        }
        // The numbers may need more than 64 bits, so their digits are compared: first their count, then byte by byte.
        // `digits()` has removed leading zeros.
        let isAscending = first.count == last.count ? !last.lexicographicallyPrecedes(first) : first.count < last.count
        return isAscending ? .positions(first: clampedNumber(first), last: clampedNumber(last)) : nil
    }

    private static func clampedNumber(_ digits: ArraySlice<UInt8>) -> Int64 {
        Int64(String(decoding: digits, as: UTF8.self)) ?? .max
    }
}

extension ByteRangeSet {
    /// The result of a Range field for a representation of a known size.
    package enum Resolution: Sendable, Hashable {
        /// The field is ignored: the response is 200 with the complete representation.
        case complete
        /// The response is 206 with these half-open ranges: at least one, none of them empty, all within the
        /// representation. The response with a single range is never multipart (RFC 9110 section 15.3.7.2).
        case satisfiable([Range<Int64>])
        /// The response is 416 with `Content-Range: bytes */size`.
        case unsatisfiable
    }

    /// Applies the set to a representation of `size` bytes (a negative size counts as 0).
    ///
    /// Unsatisfiable members are dropped. Overlapping members are merged into one range, which has the place of the first
    /// of them in the list; adjacent members are not merged. So no byte is sent twice. The field is ignored when more
    /// than `maxRanges` ranges remain, or when more than that many members overlap in one range: such a set costs much
    /// and saves nothing (RFC 9110 section 14.2, section 17.15). A suffix selects all of an empty representation, which
    /// no Content-Range can express, so the result is ``Resolution/complete``.
    package func resolve(size: Int64, maxRanges: Int = 16) -> Resolution {
        guard size > 0 else {
            let selectsSuffix = specifications.contains { specification in
                if case .suffix(let length) = specification { length > 0 } else { false }
            }
            return selectsSuffix ? .complete : .unsatisfiable
        }
        let ranges = specifications.compactMap { $0.range(inSize: size) }
        guard !ranges.isEmpty else { return .unsatisfiable }
        let clusters = ByteRangeSet.coalesce(ranges)
        guard clusters.count <= maxRanges, clusters.allSatisfy({ $0.memberCount <= maxRanges }) else {
            return .complete
        }
        return .satisfiable(clusters.map(\.range))
    }

    private struct Cluster {
        var range: Range<Int64>
        var firstIndex: Int
        var memberCount = 1
    }

    private static func coalesce(_ ranges: [Range<Int64>]) -> [Cluster] {
        var clusters: [Cluster] = []
        for (index, range) in ranges.enumerated().sorted(by: { $0.element.lowerBound < $1.element.lowerBound }) {
            guard let last = clusters.indices.last, range.lowerBound < clusters[last].range.upperBound else {
                clusters.append(Cluster(range: range, firstIndex: index))
                continue
            }
            let upperBound = Swift.max(clusters[last].range.upperBound, range.upperBound)
            clusters[last].range = clusters[last].range.lowerBound..<upperBound
            clusters[last].firstIndex = Swift.min(clusters[last].firstIndex, index)
            clusters[last].memberCount += 1
        }
        return clusters.sorted { $0.firstIndex < $1.firstIndex }
    }
}

extension ByteRangeSet.Specification {
    /// The bytes selected from a representation of `size` > 0 bytes; `nil` when there are none.
    fileprivate func range(inSize size: Int64) -> Range<Int64>? {
        switch self {
        case .positions(let first, let last):
            guard first < size else { return nil }
            return first..<(Swift.min(last ?? .max, size - 1) + 1)
        case .suffix(let length):
            guard length > 0 else { return nil }
            return (size - Swift.min(length, size))..<size
        }
    }
}

/// A Content-Range value of unit "bytes" (RFC 9110 section 14.4).
package struct ContentRange: Sendable, Hashable {
    /// The half-open range of the enclosed part, not empty; `nil` in a 416 response, which only has the size.
    package let range: Range<Int64>?
    /// The size of the complete representation; `nil` when unknown (`*`). Never `nil` together with `range`.
    package let size: Int64?

    /// `bytes first-last/size`, or `bytes first-last/*`; `nil` when the range is empty, negative or exceeds the size.
    package init?(range: Range<Int64>, size: Int64?) {
        guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= size ?? .max else { return nil }
        self.range = range
        self.size = size
    }

    /// `bytes */size`, for 416 (RFC 9110 section 15.5.17). A negative size counts as 0.
    package init(unsatisfiedSize size: Int64) {
        range = nil
        self.size = Swift.max(0, size)
    }

    /// Parses a field value. Returns `nil` for another unit, a malformed value, positions that contradict each other or
    /// the size, and numbers above `Int64.max`. A recipient must not combine such a part with others (RFC 9110 section
    /// 14.4).
    package init?(parsing value: String) {
        var scanner = FieldValueScanner(value.trimmingOptionalWhitespace)
        guard let unit = scanner.token(), unit.equalsIgnoringASCIICase("bytes"), scanner.consume(" ") else {
            return nil
        }
        if scanner.consume(literal: "*/") {
            guard let size = ContentRange.number(&scanner), scanner.isAtEnd else { return nil }
            self.init(unsatisfiedSize: size)
            return
        }
        guard let first = ContentRange.number(&scanner), scanner.consume("-"),
            let last = ContentRange.number(&scanner), scanner.consume("/"), first <= last, last < .max
        else { return nil }
        var size: Int64?
        if !scanner.consume("*") {
            guard let number = ContentRange.number(&scanner) else { return nil }
            size = number
        }
        guard scanner.isAtEnd else { return nil }
        self.init(range: first..<(last + 1), size: size)
    }

    /// The field value.
    package var serialized: String {
        let size = size.map(String.init) ?? "*"
        guard let range else { return "bytes */\(size)" }
        return "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
    }

    private static func number(_ scanner: inout FieldValueScanner) -> Int64? {
        scanner.digits().flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }
}

/// The layout of a `multipart/byteranges` content (RFC 9110 section 14.6): which bytes to send in which order.
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
    ///   - contentType: The Content-Type of every part; `nil` for none.
    /// - Returns: `nil` if an argument breaks these rules or the total exceeds `Int64`.
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
