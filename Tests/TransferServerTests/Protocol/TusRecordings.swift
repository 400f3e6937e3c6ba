import Testing

/// Requests as tus-js-client 4.3.1 sends them in Node, in its modes `ietf-draft-03` (interop 5) and `ietf-draft-05`
/// (interop 6).
///
/// Each block is one request: its head without `Host`, then its content. In a head, `{version}` is the interop version,
/// `{upload}` the location of the upload, and a line that begins with `6|` is sent in interop 6 only. The last line of
/// a block is `content A..<B`, `chunks A..<B` (in the chunked coding), `cut A..<B of N` (the connection is cut after
/// B), or `nothing`; A and B are offsets in the uploaded file.
struct TusRecording: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The size of the file in bytes.
    var size = 90_000
    /// The name under which the server publishes the file; `nil`: the server chooses one.
    var name: String?
    var type: String?
    let blocks: String

    /// Uploads for which tus-js-client reports success when the last offset equals the size of the file.
    static let uploads = [
        TusRecording(
            testDescription: "one POST with metadata", name: "größe.png", type: "image/png",
            blocks: """
                POST /files/
                Upload-Draft-Interop-Version: {version}
                Upload-Length: 90000
                Upload-Metadata: filename Z3LDtsOfZS5wbmc=,filetype aW1hZ2UvcG5n
                6|Content-Type: application/partial-upload
                Upload-Complete: ?1
                Content-Length: 90000
                content 0..<90000
                """),
        TusRecording(
            testDescription: "creation and one PATCH",
            blocks: creation + patch(0, 90000, isComplete: true)),
        TusRecording(
            testDescription: "a file in chunks; the last chunk has ?0",
            blocks: creation + patch(0, 30000) + patch(30000, 60000) + patch(60000, 90000)),
        TusRecording(
            testDescription: "a stream in chunks; the creation has the first chunk, and the last chunk has ?0",
            blocks: """
                POST /files/
                Upload-Draft-Interop-Version: {version}
                Upload-Length: 90000
                6|Content-Type: application/partial-upload
                Upload-Complete: ?0
                Content-Length: 40000
                content 0..<40000


                """ + patch(40000, 80000) + patch(80000, 90000)),
        TusRecording(
            testDescription: "a stream that is one chunk, with ?0",
            blocks: """
                POST /files/
                Upload-Draft-Interop-Version: {version}
                Upload-Length: 90000
                Upload-Metadata: filename
                6|Content-Type: application/partial-upload
                Upload-Complete: ?0
                Content-Length: 90000
                content 0..<90000
                """),
        TusRecording(
            testDescription: "a stream of unknown length",
            blocks: """
                POST /files/
                Upload-Draft-Interop-Version: {version}
                Upload-Defer-Length: 1
                Upload-Complete: ?0
                Content-Length: 0
                nothing


                """ + patch(0, 40000) + patch(40000, 80000) + patch(80000, 90000, isComplete: true, length: 90000)),
        TusRecording(
            testDescription: "a stream whose upload is cut and resumed; the last content has ?0",
            blocks: creation + patch(0, 40000) + patch(40000, 80000, cutAt: 55000) + retrieval
                + patch(55000, 80000) + patch(80000, 90000)),
        TusRecording(
            testDescription: "a file whose upload is cut and resumed; the remaining content has ?0",
            blocks: creation + patch(0, 90000, isComplete: true, cutAt: 20000) + retrieval + patch(20000, 90000)),
        TusRecording(
            testDescription: "an empty file with metadata", size: 0, name: "empty.txt", type: "text/plain",
            blocks: """
                POST /files/
                Upload-Draft-Interop-Version: {version}
                Upload-Length: 0
                Upload-Metadata: filename ZW1wdHkudHh0,filetype dGV4dC9wbGFpbg==
                Upload-Complete: ?0
                Content-Length: 0
                nothing
                """),
        TusRecording(
            testDescription: "an empty file in one chunked POST", size: 0,
            blocks: """
                POST /files/
                Upload-Draft-Interop-Version: {version}
                Upload-Length: 0
                6|Content-Type: application/partial-upload
                Upload-Complete: ?1
                Transfer-Encoding: chunked
                chunks 0..<0
                """),
    ]

    /// The parts of a parallel upload, and their concatenation.
    static let parallel = [
        """
        POST /files/
        Upload-Draft-Interop-Version: {version}
        Upload-Concat: partial
        Upload-Length: 45000
        Upload-Complete: ?0
        Content-Length: 0
        nothing
        """,
        """
        POST /files/
        Upload-Draft-Interop-Version: {version}
        Upload-Concat: partial
        Upload-Length: 45000
        6|Content-Type: application/partial-upload
        Upload-Complete: ?1
        Content-Length: 45000
        content 0..<45000
        """,
        """
        POST /files/
        Upload-Draft-Interop-Version: {version}
        Upload-Concat: final;{upload} {upload}
        Upload-Metadata: filename Z3LDtsOfZS5wbmc=,filetype aW1hZ2UvcG5n
        Content-Length: 0
        nothing
        """,
    ]

    /// Requests in the default mode of tus-js-client, which is tus 1.0.
    static let tus = [
        """
        POST /files/
        Tus-Resumable: 1.0.0
        Upload-Length: 90000
        Upload-Metadata: filename Z3LDtsOfZS5wbmc=,filetype aW1hZ2UvcG5n
        Content-Length: 0
        nothing
        """,
        """
        POST /files/
        Tus-Resumable: 1.0.0
        Upload-Length: 90000
        Content-Type: application/offset+octet-stream
        Content-Length: 90000
        content 0..<90000
        """,
        """
        POST /files/
        Tus-Resumable: 1.0.0
        Upload-Defer-Length: 1
        Content-Length: 0
        nothing
        """,
        """
        POST /files/
        Tus-Resumable: 1.0.0
        Upload-Length: 0
        Content-Length: 0
        nothing
        """,
        """
        POST /files/
        Tus-Resumable: 1.0.0
        Upload-Concat: final;{upload} {upload}
        Content-Length: 0
        nothing
        """,
        """
        PATCH {upload}
        Tus-Resumable: 1.0.0
        Upload-Offset: 10
        Content-Type: application/offset+octet-stream
        Content-Length: 40000
        content 0..<40000
        """,
        """
        POST {upload}
        Tus-Resumable: 1.0.0
        X-HTTP-Method-Override: PATCH
        Upload-Offset: 10
        Content-Type: application/offset+octet-stream
        Content-Length: 40000
        content 0..<40000
        """,
        """
        HEAD {upload}
        Tus-Resumable: 1.0.0
        nothing
        """,
        """
        DELETE {upload}
        Tus-Resumable: 1.0.0
        nothing
        """,
    ]

    private static let creation = """
        POST /files/
        Upload-Draft-Interop-Version: {version}
        Upload-Length: 90000
        Upload-Complete: ?0
        Content-Length: 0
        nothing


        """

    private static let retrieval = """
        HEAD {upload}
        Upload-Draft-Interop-Version: {version}
        nothing


        """

    /// An append. Its content may be the last of the file although it has ?0: tus-js-client sends ?1 only if it has
    /// already reached the end of the source.
    /// - Parameters:
    ///   - length: the length of the upload, if the creation did not have it.
    ///   - cut: the offset at which the connection is cut.
    private static func patch(
        _ start: Int, _ end: Int, isComplete: Bool = false, length: Int? = nil, cutAt cut: Int? = nil
    ) -> String {
        """
        PATCH {upload}
        Upload-Draft-Interop-Version: {version}
        Upload-Offset: \(start)
        6|Content-Type: application/partial-upload
        \(length.map { "Upload-Length: \($0)\n" } ?? "")Upload-Complete: \(isComplete ? "?1" : "?0")
        Content-Length: \(end - start)
        \(cut.map { "cut \(start)..<\($0) of \(end - start)" } ?? "content \(start)..<\(end)")


        """
    }
}
