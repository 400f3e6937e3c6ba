extension ByteRangeSet {
    /// What to answer to a Range field, given the size of the selected representation.
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
    /// Unsatisfiable members are dropped. Overlapping ones are merged into one range, which stands where the first of
    /// its members stood in the request; adjacent ones stay apart. So no byte is sent twice. The field is ignored when
    /// more than `maximumRanges` remain, or when more than that many members overlap in one range: such a set saves
    /// nothing and costs much (RFC 9110 §14.2, §17.15). Of an empty representation a suffix selects everything, which
    /// no Content-Range can express: ``Resolution/whole``.
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
