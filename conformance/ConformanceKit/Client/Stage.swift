/// The state of a scenario that its script can read and change.
struct Stage: Sendable {
    let size: Int64
    var uploads: UploadModel
    var downloads: DownloadModel
    /// The number of the step that the script has reached.
    var step = 0
    /// The URLs of both origins of the scripted server, without a path.
    var origins: [String] = []

    init(size: Int64) {
        self.size = size
        uploads = UploadModel(size: size)
        downloads = DownloadModel(size: size)
    }

    /// Resets the connection at each of these offsets of the representation, once per offset.
    mutating func cut(_ request: ScriptedRequest, _ reaction: inout Reaction, at offsets: Int64...) {
        cut(request, &reaction, at: offsets)
    }

    mutating func cut(_ request: ScriptedRequest, _ reaction: inout Reaction, at offsets: [Int64]) {
        guard step < offsets.count, reaction.shouldStore, request.reaches(offsets[step]) else { return }
        reaction.cut(after: offsets[step] - request.start)
        step += 1
    }

    /// Sets the offset of the first upload, regardless of the bytes that arrived.
    mutating func setFirstOffset(_ offset: Int64) {
        if !uploads.uploads.isEmpty { uploads.uploads[0].offset = offset }
    }
}
