/// A version of the draft, as a client speaks it.
package enum Profile: Sendable, Hashable, CustomStringConvertible {
    /// 3 (draft -01), 4, 5, 6 (-04, -05), 7 (-06 to -08) or 8 (-09 and later).
    case interop(Int)
    /// The RFC to be: as 8, without a version field.
    case rfc

    static let versions = 3...8
    static let allRanks = 3...9
    /// From draft -06 on completeness is stated in every request and response.
    static let explicitRanks = 7...9

    /// `8` or `rfc`; nil for anything else.
    package init?(_ text: some StringProtocol) {
        if text.lowercased() == "rfc" {
            self = .rfc
        } else if let number = Int(text), Self.versions.contains(number) {
            self = .interop(number)
        } else {
            return nil
        }
    }

    /// Orders the profiles by age: the version, and 9 for the RFC.
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

    /// The word of options and reports.
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

    /// Whether completeness is stated by the inverse `Upload-Incomplete`.
    var isInverse: Bool { rank == 3 }
    var completenessName: String { isInverse ? "Upload-Incomplete" : "Upload-Complete" }

    func completeness(_ isComplete: Bool) -> (String, String) {
        (completenessName, isComplete != isInverse ? "?1" : "?0")
    }

    /// Whether appends need `application/partial-upload`.
    var hasMediaType: Bool { rank >= 6 }
    /// Whether Upload-Length exists.
    var hasLengthField: Bool { rank >= 6 }
    /// Whether every response to a creation or append reports the offset.
    var repeatsOffset: Bool { rank <= 6 }

    /// What a response says about completeness.
    func isComplete(_ carrier: some FieldCarrier) -> Bool? {
        carrier.boolean(completenessName).map { $0 != isInverse }
    }
}
