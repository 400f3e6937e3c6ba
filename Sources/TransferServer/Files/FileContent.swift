import HTTPSemantics
import SystemCalls
import UploadStorage

extension Response.Content {
    /// The bytes of a published file. If ``TargetHandler/respond(to:)`` returns this content with status 200, the
    /// server evaluates conditions and ranges.
    public static func file(_ file: PublishedFile) -> Response.Content {
        .stream(FileContent(file, [.range(0..<file.attributes.size)]))
    }
}

/// Bytes of a published file, with other bytes between them for `multipart/byteranges`.
final class FileContent: ContentStream {
    /// The file has become shorter.
    private struct UnexpectedEnd: Error, CustomStringConvertible {
        let description = "a published file became shorter while it was sent"
    }

    let file: PublishedFile
    private let segments: [(start: Int64, segment: MultipartByteRanges.Segment)]
    let length: Int64?

    init(_ file: PublishedFile, _ segments: [MultipartByteRanges.Segment]) {
        self.file = file
        var start: Int64 = 0
        self.segments = segments.map { segment in
            defer { start += segment.count }
            return (start, segment)
        }
        length = start
    }

    /// The range of the file, if the content is one range without other bytes.
    var range: Range<Int64>? {
        guard segments.count == 1, case .range(let range) = segments[0].segment else { return nil }
        return range
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int {
        guard let (start, segment) = segments.last(where: { $0.start <= position && $0.segment.count > 0 })
        else { throw UnexpectedEnd() }
        let skipped = position - start
        let count = Int(min(Int64(buffer.count), segment.count - skipped))
        guard count > 0 else { throw UnexpectedEnd() }
        switch segment {
        case .bytes(let bytes):
            buffer.copyBytes(from: bytes[Int(skipped)..<Int(skipped) + count])
            return count
        case .range(let range):
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            let read = try file.read(into: part, at: range.lowerBound + skipped)
            guard read > 0 else { throw UnexpectedEnd() }
            return read
        }
    }
}
