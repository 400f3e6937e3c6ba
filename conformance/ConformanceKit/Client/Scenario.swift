/// One situation that a client is put into: how the server behaves, and what the client should have made of it.
struct Scenario: Sendable {
    enum Direction: Sendable {
        case upload
        case download
    }

    /// What the command is run again for after it ended with the status that asks for it, or was killed.
    enum Interlude: Sendable {
        case none
        /// The file gets other bytes of the same size before the next run.
        case changesFile
    }

    let question: Question
    let direction: Direction
    /// Bytes of the representation.
    let size: Int64
    var interlude = Interlude.none
    /// How the server differs from a good one: gets a request and the good reaction to it.
    let script: @Sendable (PlayedRequest, inout Stage, inout Reaction) -> Void
    /// - Throws: ``Unmet`` or ``NotOffered``.
    let judge: @Sendable (PlayRecord) throws -> Void

    static let usualSize: Int64 = 300_000

    static func upload(
        _ id: String, _ level: Level, _ section: String, _ requirement: String, covers: String = "",
        size: Int64 = usualSize, interlude: Interlude = .none,
        script: @escaping @Sendable (PlayedRequest, inout Stage, inout Reaction) -> Void = { _, _, _ in },
        judge: @escaping @Sendable (PlayRecord) throws -> Void
    ) -> Scenario {
        Scenario(
            question: Question(id, level, section, requirement, covers: covers), direction: .upload, size: size,
            interlude: interlude, script: script, judge: judge)
    }

    static func download(
        _ id: String, _ level: Level, _ section: String, _ requirement: String, covers: String = "",
        size: Int64 = usualSize,
        script: @escaping @Sendable (PlayedRequest, inout Stage, inout Reaction) -> Void = { _, _, _ in },
        judge: @escaping @Sendable (PlayRecord) throws -> Void
    ) -> Scenario {
        Scenario(
            question: Question(id, level, section, requirement, covers: covers), direction: .download, size: size,
            script: script, judge: judge)
    }
}

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
    mutating func cut(_ request: PlayedRequest, _ reaction: inout Reaction, at offsets: Int64...) {
        cut(request, &reaction, at: offsets)
    }

    mutating func cut(_ request: PlayedRequest, _ reaction: inout Reaction, at offsets: [Int64]) {
        guard step < offsets.count, reaction.stores, request.reaches(offsets[step]) else { return }
        reaction.cut(after: offsets[step] - request.start)
        step += 1
    }

    /// Lets the first upload be as far as `offset`, whatever arrived.
    mutating func pretend(_ offset: Int64) {
        if !uploads.uploads.isEmpty { uploads.uploads[0].offset = offset }
    }
}
