/// What a script can see and change besides its reaction.
struct Stage: Sendable {
    let size: Int64
    var uploads: UploadModel
    var downloads: DownloadModel
    /// How far the script is.
    var step = 0
    /// The URLs of both servers, without a path.
    var origins: [String] = []

    init(size: Int64) {
        self.size = size
        uploads = UploadModel(size: size)
        downloads = DownloadModel(size: size)
    }

    /// Cuts the connection at each of these offsets of the representation, once.
    mutating func cut(_ request: ScriptedRequest, _ reaction: inout Reaction, at offsets: Int64...) {
        cut(request, &reaction, at: offsets)
    }

    mutating func cut(_ request: ScriptedRequest, _ reaction: inout Reaction, at offsets: [Int64]) {
        guard step < offsets.count, reaction.stores, request.reaches(offsets[step]) else { return }
        reaction.cut(after: offsets[step] - request.start)
        step += 1
    }

    /// Lets the first upload be as far as `offset`, whatever arrived.
    mutating func pretend(_ offset: Int64) {
        if !uploads.uploads.isEmpty { uploads.uploads[0].offset = offset }
    }
}
