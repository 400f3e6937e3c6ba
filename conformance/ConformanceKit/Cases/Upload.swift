/// An upload resource of the subject.
struct Upload: Sendable {
    /// As the subject wrote it.
    let location: String
    let endpoint: Endpoint
}

/// What a subject describes an upload.
struct UploadState: Sendable {
    let offset: Int64
    let isComplete: Bool?
    let response: Response
}
