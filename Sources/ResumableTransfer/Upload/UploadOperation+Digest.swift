import Digests
import HTTPSemantics

extension UploadOperation {
    /// The value of `Repr-Digest` for the entire source; `nil` if a stop was requested, or if the length is unknown,
    /// because such a source may not be readable twice.
    func sourceDigest() async throws(TransferError) -> String? {
        guard let length = source.length else { return nil }
        let flag = StopFlag()
        let source = source
        let result = await driver.control.interruptible(
            by: { flag.raise() },
            while: { await BlockingWork.run { Self.digest(of: source, length: length, until: flag) } })
        return try result.get().map { DigestField(values: [(.sha256, $0)]).serialized }
    }

    private static func digest(
        of source: any UploadSource, length: Int64, until flag: StopFlag
    ) -> Result<[UInt8]?, TransferError> {
        var digest = RunningDigest(.sha256)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            if flag.isRaised { return .success(nil) }
            do throws(SourceError) {
                let wanted = Int(min(Int64(buffer.count), length - offset))
                let count = try source.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
                digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                guard count > 0 else {
                    return .failure(TransferError(.sourceChanged, "The source has fewer bytes than its length."))
                }
                offset += Int64(count)
            } catch {
                return .failure(TransferError(error, at: offset))
            }
        }
        return .success(digest.finalized())
    }
}
