/// A single way in which the reference client does otherwise what the draft leaves open: no scenario may call it wrong.
enum Habit: CaseIterable, Sendable {
    /// What is interrupted has failed.
    case neverResumes
    /// What is interrupted begins anew.
    case beginsAnew
    /// A transfer that cannot be resumed starts from the beginning.
    case beginsAnewAfterFailure
    /// An interrupted transfer is resumed when the command is run again.
    case resumesLater
    /// What is interrupted is sent without a word of the draft.
    case fallsBack
    /// No interim response is looked at, the content goes in an append.
    case ignoresInterims
    /// Where no offset is reported it is tried at the beginning.
    case triesBeginning
    /// The target is looked at first, and the upload deleted in the end.
    case tidiesUp
    /// Preflights come without the fields of a request, and a new upload may be of another version.
    case asksLikeBrowser
    /// Responses are read after all content was sent, and not at all if sending fails.
    case readsLate
    /// A file has its size before it has its bytes, and a download that is cut has failed.
    case preallocates
}
