extension ByteRangeSet {
    /// The result of a Range field for a representation of a known size.
    package enum Resolution: Sendable, Hashable {
        /// Ignore the field: 200 with everything.
        case complete
        /// 206 with these half-open ranges, at least one, none of them empty, all within the representation. One range
        /// is never answered as multipart (RFC 9110 §15.3.7.2).
        case satisfiable([Range<Int64>])
        /// 416 with `Content-Range: bytes */size`.
        case unsatisfiable
    }

    /// Applies the set to a representation of `size` bytes (a negative size counts as 0).
    ///
    /// Unsatisfiable members are dropped. Overlapping members are merged into one range at the position of the first of
    /// them; adjacent members are not merged. So no byte is sent twice. The field is ignored when more than
    /// `maximumRanges` remain, or when more than that many members overlap in one range: such a set costs much and
    /// saves nothing (RFC 9110 §14.2, §17.15). A suffix selects all of an empty representation, which no Content-Range
    /// can express, so the result is ``Resolution/complete``.
    package func resolve(size: Int64, maximumRanges: Int = 16) -> Resolution {
        guard size > 0 else {
            let selectsSuffix = specifications.contains { specification in
                if case .suffix(let length) = specification { length > 0 } else { false }
            }
            return selectsSuffix ? .complete : .unsatisfiable
        }
        let ranges = specifications.compactMap { $0.range(inSize: size) }
        guard !ranges.isEmpty else { return .unsatisfiable }
        let clusters = ByteRangeSet.coalesce(ranges)
        guard clusters.count <= maximumRanges, clusters.allSatisfy({ $0.memberCount <= maximumRanges }) else {
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
    /// The bytes selected from a representation of `size` > 0 bytes; nil when there are none.
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
