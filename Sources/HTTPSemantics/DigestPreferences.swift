import StructuredFields

/// The value of Want-Content-Digest or Want-Repr-Digest (RFC 9530 §4), reduced to the supported algorithms.
package struct DigestPreferences: Sendable, Hashable {
    /// From 0, not acceptable, to 10, most preferred.
    package let weights: [DigestAlgorithm: Int]

    /// Parses the values of all lines of the field. Nil if there is none or the value is not a Dictionary.
    ///
    /// The field only states a preference, so a member whose value is not an Integer of 0…10 is skipped.
    package init?(fieldLines: [String]) {
        guard !fieldLines.isEmpty, let dictionary = try? OrderedDictionary(parsing: fieldLines) else { return nil }
        var weights: [DigestAlgorithm: Int] = [:]
        for (key, member) in dictionary {
            guard let algorithm = DigestAlgorithm(rawValue: key), case .item(let item) = member,
                case .integer(let weight) = item.value, (0...10).contains(weight)
            else { continue }
            weights[algorithm] = weight
        }
        self.weights = weights
    }

    /// The algorithm of the highest weight above 0, sha-256 among equals; nil when none is wanted.
    package var preferred: DigestAlgorithm? {
        DigestAlgorithm.allCases.filter { weights[$0, default: 0] > 0 }
            .reduce(nil) { best, algorithm in
                guard let best else { return algorithm }
                return weights[algorithm, default: 0] > weights[best, default: 0] ? algorithm : best
            }
    }
}
