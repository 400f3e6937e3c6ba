/// An upload resource of the subject.
struct Upload: Sendable {
    /// The value of Location, as the subject sent it.
    let location: String
    let endpoint: Endpoint
}

/// The state of an upload as a response to HEAD reported it.
struct UploadState: Sendable {
    let offset: Int64
    let isComplete: Bool?
    let response: Response
}
