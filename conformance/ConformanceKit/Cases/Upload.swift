/// An upload resource of the subject.
struct Upload: Sendable {
    /// As the subject wrote it.
    let location: String
    let endpoint: Endpoint
}

/// What a subject tells about an upload.
struct UploadStanding: Sendable {
    let offset: Int64
    let isComplete: Bool?
    let response: Response
}
