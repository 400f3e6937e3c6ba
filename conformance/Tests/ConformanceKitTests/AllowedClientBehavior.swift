/// Unusual behavior of the reference client that the draft allows: no scenario may report it as wrong.
enum AllowedClientBehavior: CaseIterable, Sendable {
    /// An interrupted transfer fails.
    case neverResumes
    /// An interrupted transfer restarts from the beginning.
    case startsOver
    /// A transfer that cannot be resumed restarts from the beginning.
    case startsOverAfterFailure
    /// An interrupted transfer is resumed when the command is run again.
    case resumesLater
    /// After an interruption the file is sent in a plain request, without fields of the draft.
    case fallsBack
    /// Interim responses are ignored, and the content is sent in an append.
    case ignoresInterims
    /// If no offset is reported, an append at offset 0 is tried.
    case triesBeginning
    /// A HEAD for the target precedes the upload, and the upload is deleted at the end.
    case deletesUploadAtEnd
    /// An OPTIONS request, as browsers send it, precedes the upload. If the upload restarts, it has another version.
    case sendsPreflights
    /// Responses are read after all content was sent, and not at all if sending fails.
    case readsLate
    /// An interrupted download fails and leaves a file of the final size, in which the missing bytes are zero.
    case preallocates
}
