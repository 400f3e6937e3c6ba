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
    case ignoresSecondLocation = "4.2/two-locations"
    case ignoresOtherLocation = "4.2/other-location"
    case repeatsTooLarge = "4.1.4/413-unknown"
    case skipsDiscovery = "4.1.4/413-discovery"
    case readsLimitsPiecewise = "4.1.4/void"
    case takesIncompleteForSuccess = "4.1.2/inverted"
    case takesSilenceForFailure = "4.1.2/silent-success"
    case hidesLength = "4.1.3/length-reported"
    case sendsOnAfterAnswer = "9112/early-answer"
    case changesMethod = "9110/append-307"
    case ignoresDotSegments = "4.2/location-relative"
    case appendsMeanwhile = "4.6/one-transfer"
    case asksMeanwhile = "4.3/not-meanwhile"
    case attaches = "4.2.1/disposition"
    case repeatsCoding = "8/codings-once"
    case printsUploads = "13/secret"
    case outstaysLifetime = "4.1.4/max-age"
    case takesOneForTrue = "4.1.2/complete-on-retrieval"
    case leavesEmptyIncomplete = "4.2/empty"
    case takesEndForCompletion = "4.4/finish"
    case distrustsHigherOffset = "4.3/higher"
    case appendsBehindOffset = "4.4.1/offset-reported"
    case breaksFields = "9112/requests"
    case neverGivesUp = "9110/gives-up"
    case inventsUploads = "4.2/no-104-cut"
    case believesVersionless = "B/no-version"
    case acceptsLowerConflict = "4.4/conflict-lower"
    case takesEarlyEndForSuccess = "4.1.2/complete-early"
    case readsStringLength = "9651/length"
    case takesCutForWhole = "14/cut-chunked"
    case takesAny416ForEnd = "14/416-shorter"
    case ignoresTotal = "14/other-size"
    case combinesWithoutValidator = "14/no-validator"
    case takesPartForWhole = "14/unasked-part"
    case appendsPartWithoutRange = "14/part-without-range"
    case ignoresDates = "14/date"
    case mixesDates = "14/date-changed"
    case forgetsDownload = "14/restart"
    case asksForFileForEver = "14/error-for-ever"
    case leaksOnDownload = "14/redirect-elsewhere"
    case believesClosedUpload = "4.3/no-response"
    case believesClosedDownload = "14/no-response"
    case startsOverAfterError = "4.3/error-on-retrieval"
    case appendsChangedFile = "restart/changed-file"
    case sendsOneByteMore = "9112/content-length"
    case placesByContentRange = "14/shifted-up"
    case completesWithAnyPart = "14/short-part"
    case completesWithAnyContent = "14/short-content"
    case acceptsLowerProgress = "4.1.1/lower-progress"

    var caughtBy: String { rawValue }

    /// Scenarios that have to run as well, so that the defect shows.
    var occasions: [String] {
        switch self {
        case .appendsWithoutMediaType, .dropsVersionOnAppend, .statesOtherLength, .sendsShiftedBytes, .repeatsCoding,
            .appendsBehindOffset:
            ["4.3/cut"]
        case .sendsIfRangeWithWeakTag: ["14/weak-tag"]
        case .appendsMeanwhile, .asksMeanwhile, .attaches, .printsUploads, .breaksFields, .hidesLength: ["4.2/whole"]
        case .neverGivesUp: ["4.3/error-for-ever"]
        case .sendsOneByteMore: ["4.2/whole", "4.3/cut"]
        default: []
        }
    }
}
