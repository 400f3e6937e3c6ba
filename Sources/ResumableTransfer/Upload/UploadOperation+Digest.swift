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
        do throws(TransferError) {
            let isRead = try flag.readAll(length) { buffer, offset throws(TransferError) in
                do throws(SourceError) {
                    let count = try source.read(into: buffer, at: offset)
                    // The source has fewer bytes than its length.
                    guard count > 0 else { throw .changed }
                    return count
                } catch {
                    throw TransferError(error, at: offset)
                }
            } body: {
                digest.update($0)
            }
            return .success(isRead ? digest.finalized() : nil)
        } catch {
            return .failure(error)
        }
    }
}
