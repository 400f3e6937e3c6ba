import StructuredFields

/// The value of Content-Digest or Repr-Digest (RFC 9530 section 2, section 3), reduced to the supported algorithms.
package struct DigestField: Sendable {
    /// One entry for each algorithm, in order. A digest with a wrong number of bytes is kept, and never matches.
    package var values: [(algorithm: DigestAlgorithm, bytes: [UInt8])]

    package init(values: [(algorithm: DigestAlgorithm, bytes: [UInt8])]) {
        self.values = values
    }

    /// Parses the values of all lines of the field.
    ///
    /// Members of unknown algorithms are skipped. Returns `nil` if there is no line, the value is not a Dictionary, the
    /// value of a supported algorithm is not a Byte Sequence, or no algorithm is supported. The caller must then handle
    /// the field as absent.
    package init?(fieldLines: [String]) {
        guard !fieldLines.isEmpty, let dictionary = try? OrderedDictionary(parsing: fieldLines) else { return nil }
        var values: [(algorithm: DigestAlgorithm, bytes: [UInt8])] = []
        for (key, member) in dictionary {
            guard let algorithm = DigestAlgorithm(rawValue: key) else { continue }
            guard case .item(let item) = member, case .byteSequence(let bytes) = item.value else { return nil }
            values.append((algorithm, bytes))
        }
        guard !values.isEmpty else { return nil }
        self.values = values
    }

    /// The digest given for `algorithm`; `nil` when there is none.
    package subscript(algorithm: DigestAlgorithm) -> [UInt8]? {
        values.first { $0.algorithm == algorithm }?.bytes
    }

    /// The field value, e.g. `sha-256=:…:`. If there are no values, it is empty, and the field must not be sent.
    package var serialized: String {
        var dictionary = OrderedDictionary()
        for (algorithm, bytes) in values {
            dictionary[algorithm.rawValue] = .item(Item(.byteSequence(bytes)))
        }
        // Fixed keys and byte sequences are always serializable.
        return (try? dictionary.serialized()) ?? ""
    }
}

extension DigestField: Hashable {
    package static func == (left: DigestField, right: DigestField) -> Bool {
        left.values.elementsEqual(right.values) { $0.algorithm == $1.algorithm && $0.bytes == $1.bytes }
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(values.count)
        for (algorithm, bytes) in values {
            hasher.combine(algorithm)
            hasher.combine(bytes)
        }
    }
}

/// The active hash algorithms of RFC 9530 section 5. The insecure algorithms of its registry are not supported.
public enum DigestAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// SHA-256: 32 bytes.
    case sha256 = "sha-256"
    /// SHA-512: 64 bytes.
    case sha512 = "sha-512"

    /// The number of bytes of a digest.
    public var size: Int {
        switch self {
        case .sha256: 32
        case .sha512: 64
        }
    }
}

/// The value of Want-Content-Digest or Want-Repr-Digest (RFC 9530 section 4), reduced to the supported algorithms.
package struct DigestPreferences: Sendable, Hashable {
    /// The weight of each algorithm, from 0 (not acceptable) to 10 (most preferred).
    package let weights: [DigestAlgorithm: Int]

    /// Parses the values of all lines of the field. Returns `nil` if there is no line or the value is not a Dictionary.
    ///
    /// The field only states a preference, so a member whose value is not an Integer from 0 to 10 is skipped.
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

    /// The algorithm with the highest weight above 0; sha-256 if both have the same weight; `nil` when no algorithm is
    /// wanted.
    package var preferred: DigestAlgorithm? {
        DigestAlgorithm.allCases.filter { weights[$0, default: 0] > 0 }
            .reduce(nil) { best, algorithm in
                guard let best else { return algorithm }
                return weights[algorithm, default: 0] > weights[best, default: 0] ? algorithm : best
            }
    }
}
