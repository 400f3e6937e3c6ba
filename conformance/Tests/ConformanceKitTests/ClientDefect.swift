/// A single way in which the reference client can be broken, and what has to notice.
enum ClientDefect: String, CaseIterable, Sendable {
    case resendsFromZero = "4.3/cut"
    case ignoresOffsetOf409 = "4.4/conflict-offset"
    case appendsWithoutMediaType = "4.4.1/append-fields"
    case goesOnAfterGone = "4.3/gone-404"
    case sendsCredentialsElsewhere = "9110/redirect-elsewhere"
    case takesShiftedPart = "14/shifted-down"
    case mixesRepresentations = "14/changed-part"
    case combinesUnderWeakTag = "14/weak-tag"
    case retriesForEver = "4.3/error-for-ever"
    case believesOtherVersions = "B/other-version"
    case dropsVersionOnAppend = "B/every-request"
    case acceptsLowerOffset = "4.1.1/lower"
    case acceptsImpossibleOffset = "4.3/impossible"
    case readsDecimalOffsets = "9651/offset-decimal"
    case resumesFinalAnswers = "4.1.2/error-complete"
    case repeatsRefusals = "4.2/refused-400"
    case ignoresRetryAfter = "9110/retry-after"
    case ignoresAppendLimit = "4.1.4/append-sizes"
    case doesNotCancelTooLarge = "4.1.4/max-size"
    case takesFirstLimit = "9651/last-key"
    case countsFailureAsSuccess = "14/gone"
    case appendsWholeToPart = "14/range-ignored"
    case sendsIfRangeWithWeakTag = "13/if-range"
    case misreadsInterims = "5/many-interims"
    case takesApplicationLocationForError = "4.2/application-location"
    case ignoresLostAnswer = "4.3/lost-answer"
    case statesOtherLength = "4.1.3/consistent-lengths"
    case sendsShiftedBytes = "4.1.1/bytes-at-offset"
    case forgetsState = "restart/goes-on"

    var caughtBy: String { rawValue }

    /// Scenarios that have to be played as well, so that the defect shows.
    var occasions: [String] {
        switch self {
        case .appendsWithoutMediaType, .dropsVersionOnAppend, .statesOtherLength, .sendsShiftedBytes: ["4.3/cut"]
        case .sendsIfRangeWithWeakTag: ["14/weak-tag"]
        default: []
        }
    }
}
