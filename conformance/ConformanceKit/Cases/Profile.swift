/// A version of the draft that requests use.
package enum Profile: Sendable, Hashable, CustomStringConvertible {
    /// An interop version: 3 (draft -01), 4, 5, 6 (-04, -05), 7 (-06 to -08) or 8 (-09 and later).
    case interop(Int)
    /// The future RFC: version 8 without a version field.
    case rfc

    static let versions = 3...8
    static let allRanks = 3...9
    /// The ranks of the versions (draft -06 and later) that state completeness in every request and response.
    static let explicitRanks = 7...9

    /// Parses `3` to `8` or `rfc`; `nil` for any other text.
    package init?(_ text: some StringProtocol) {
        if text.lowercased() == "rfc" {
            self = .rfc
        } else if let number = Int(text), Self.versions.contains(number) {
            self = .interop(number)
        } else {
            return nil
        }
    }

    /// A number by which profiles are ordered: the interop version, or 9 for the RFC.
    var rank: Int {
        switch self {
        case .interop(let version): version
        case .rfc: 9
        }
    }

    package var description: String {
        switch self {
        case .interop(let version): "interop \(version)"
        case .rfc: "RFC"
        }
    }

    /// The name of the profile in options and reports.
    package var word: String {
        switch self {
        case .interop(let version): "\(version)"
        case .rfc: "rfc"
        }
    }

    var versionFields: [(String, String)] {
        switch self {
        case .interop(let version): [("Upload-Draft-Interop-Version", "\(version)")]
        case .rfc: []
        }
    }

    /// Whether the version states completeness with the inverse field `Upload-Incomplete`.
    var isInverse: Bool { rank == 3 }
    var completenessName: String { isInverse ? "Upload-Incomplete" : "Upload-Complete" }

    func completeness(_ isComplete: Bool) -> (String, String) {
        (completenessName, isComplete != isInverse ? "?1" : "?0")
    }

    /// The field line that states completeness, for reports.
    func completenessLine(_ isComplete: Bool) -> String {
        let (name, value) = completeness(isComplete)
        return "\(name): \(value)"
    }

    /// Whether appends need `application/partial-upload`.
    var hasMediaType: Bool { rank >= 6 }
    /// Whether Upload-Length exists.
    var hasLengthField: Bool { rank >= 6 }
    /// Whether every response to a creation or append reports the offset.
    var shouldRepeatOffset: Bool { rank <= 6 }

    /// Returns the completeness that a response states; `nil` if it states none.
    func isComplete(_ carrier: some FieldCarrier) -> Bool? {
        carrier.boolean(completenessName).map { $0 != isInverse }
    }
}
