/// A defect of the reference client. The raw value is the ID of the case that has to detect it.
enum ClientDefect: String, CaseIterable, Sendable {
    case resendsFromZero = "4.3/cut"
    case ignoresOffsetOf409 = "4.4/conflict-offset"
    case appendsWithoutMediaType = "4.4.1/append-fields"
    case continuesAfterGone = "4.3/gone-404"
    case sendsCredentialsElsewhere = "9110/redirect-elsewhere"
    case acceptsShiftedPart = "14/shifted-down"
    case mixesRepresentations = "14/changed-part"
    case combinesUnderWeakTag = "14/weak-tag"
    case retriesForEver = "4.3/error-for-ever"
    case acceptsOtherVersions = "B/other-version"
    case dropsVersionOnAppend = "B/every-request"
    case acceptsLowerOffset = "4.1.1/lower"
    case acceptsImpossibleOffset = "4.3/impossible"
    case readsDecimalOffsets = "9651/offset-decimal"
    case resumesFinalAnswers = "4.1.2/error-complete"
    case repeatsRefusals = "4.2/refused-400"
    case ignoresRetryAfter = "9110/retry-after"
    case ignoresAppendLimit = "4.1.4/append-sizes"
    case doesNotCancelTooLarge = "4.1.4/max-size"
    case usesFirstLimit = "9651/last-key"
    case countsFailureAsSuccess = "14/gone"
    case appendsFullFileToPart = "14/range-ignored"
    case sendsIfRangeWithWeakTag = "13/if-range"
    case misreadsInterims = "5/many-interims"
    case treatsApplicationLocationAsError = "4.2/application-location"
    case ignoresLostAnswer = "4.3/lost-answer"
    case statesOtherLength = "4.1.3/consistent-lengths"
    case sendsShiftedBytes = "4.1.1/bytes-at-offset"
    case forgetsState = "restart/resumes"
    case ignoresSecondLocation = "4.2/two-locations"
    case ignoresOtherLocation = "4.2/other-location"
    case repeatsTooLarge = "4.1.4/413-unknown"
    case skipsDiscovery = "4.1.4/413-discovery"
    case acceptsPartlyInvalidLimits = "4.1.4/void"
    case treatsIncompleteAsSuccess = "4.1.2/inverted"
    case treatsSilenceAsFailure = "4.1.2/silent-success"
    case omitsLength = "4.1.3/length-reported"
    case keepsSendingAfterResponse = "9112/early-answer"
    case changesMethod = "9110/append-307"
    case ignoresDotSegments = "4.2/location-relative"
    case appendsMeanwhile = "4.6/one-transfer"
    case sendsRequestMeanwhile = "4.3/not-meanwhile"
    case sendsAttachmentDisposition = "4.2.1/disposition"
    case repeatsCoding = "8/codings-once"
    case printsUploads = "13/secret"
    case usesExpiredUpload = "4.1.4/max-age"
    case treatsOneAsTrue = "4.1.2/complete-on-retrieval"
    case leavesEmptyIncomplete = "4.2/empty"
    case treatsEndAsCompletion = "4.4/finish"
    case rejectsHigherOffset = "4.3/higher"
    case appendsBehindOffset = "4.4.1/offset-reported"
    case breaksFields = "9112/requests"
    case neverStops = "9110/stops"
    case inventsUploads = "4.2/no-104-cut"
    case acceptsMissingVersion = "B/no-version"
    case acceptsLowerConflict = "4.4/conflict-lower"
    case treatsEarlyEndAsSuccess = "4.1.2/complete-early"
    case readsStringLength = "9651/length"
    case treatsCutAsComplete = "14/cut-chunked"
    case treatsAny416AsEnd = "14/416-shorter"
    case ignoresTotal = "14/other-size"
    case combinesWithoutValidator = "14/no-validator"
    case treatsPartAsComplete = "14/unasked-part"
    case appendsPartWithoutRange = "14/part-without-range"
    case ignoresDates = "14/date"
    case mixesDates = "14/date-changed"
    case forgetsDownload = "14/restart"
    case retriesDownloadForEver = "14/error-for-ever"
    case leaksOnDownload = "14/redirect-elsewhere"
    case treatsClosedUploadAsSuccess = "4.3/no-response"
    case treatsClosedDownloadAsSuccess = "14/no-response"
    case startsOverAfterError = "4.3/error-on-retrieval"
    case appendsChangedFile = "restart/changed-file"
    case sendsOneByteMore = "9112/content-length"
    case placesByContentRange = "14/shifted-up"
    case completesWithAnyPart = "14/short-part"
    case completesWithAnyContent = "14/short-content"
    case acceptsLowerProgress = "4.1.1/lower-progress"

    var detectedBy: String { rawValue }

    /// The IDs of other scenarios that have to run so that the defect has an effect.
    var additionalCases: [String] {
        switch self {
        case .appendsWithoutMediaType, .dropsVersionOnAppend, .statesOtherLength, .sendsShiftedBytes, .repeatsCoding,
            .appendsBehindOffset:
            ["4.3/cut"]
        case .sendsIfRangeWithWeakTag: ["14/weak-tag"]
        case .appendsMeanwhile, .sendsRequestMeanwhile, .sendsAttachmentDisposition, .printsUploads, .breaksFields,
            .omitsLength:
            ["4.2/complete"]
        case .neverStops: ["4.3/error-for-ever"]
        case .sendsOneByteMore: ["4.2/complete", "4.3/cut"]
        default: []
        }
    }
}
