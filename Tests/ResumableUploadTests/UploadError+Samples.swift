import ResumableUpload

extension UploadError {
    /// One error of each case.
    static let samples: [UploadError] = [
        .mismatchingOffset(expected: 40, provided: 41), .inconsistentLength(detail: "They differ."),
        .lengthExceeded(length: 10), .completed, .notFound, .deactivated(reason: "its length was exceeded"),
        .missingOffset, .missingCompleteness, .unsupportedMediaType, .contentCodingOnAppend, .uploadTooLarge(limit: 10),
        .appendTooLarge(limit: 10), .appendTooSmall(limit: 10), .stateFieldsOnRetrieval, .methodNotAllowed,
        .digestMismatch(field: "Content-Digest", algorithm: "sha-256"),
    ]
}
