import HTTPTransport
import Digests
import Foundation

/// A source of bytes that are in memory.
public struct DataSource: UploadSource {
    private let data: Data

    /// - Parameter data: the representation. It is not copied, unless it is a slice.
    public init(_ data: Data) {
        // The indices of a slice need not begin at 0.
        self.data = data.startIndex == 0 ? data : Data(data)
    }

    /// The number of bytes.
    public var length: Int64? { Int64(data.count) }

    /// Copies bytes of the data to the buffer. It never throws.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        guard offset >= 0, offset < Int64(data.count) else { return 0 }
        let end = min(data.count, Int(offset) + buffer.count)
        return data.copyBytes(to: buffer, from: Int(offset)..<end)
    }

    /// Has no effect: the bytes stay in memory.
    public func acknowledged(upTo offset: Int64) {}
}

extension DataSource: RecognizableSource {
    /// The maximum size in bytes of data whose sample contains all bytes. The sample of larger data contains evenly
    /// spread blocks.
    private static let maxCompleteSample = 8 << 20
    private static let blockSize = 64 << 10

    func record() throws(TransferError) -> SourceRecord {
        var digest = RunningDigest(.sha256)
        let count = data.count
        data.withUnsafeBytes { bytes in
            if count <= Self.maxCompleteSample {
                digest.update(bytes)
            } else {
                let blocks = Self.maxCompleteSample / Self.blockSize
                for block in 0..<blocks {
                    let start = (count - Self.blockSize) / (blocks - 1) * block
                    let first = block == blocks - 1 ? count - Self.blockSize : start
                    digest.update(UnsafeRawBufferPointer(rebasing: bytes[first..<first + Self.blockSize]))
                }
            }
        }
        return SourceRecord(size: Int64(count), sample: digest.finalized().hexadecimal)
    }

    var isUnchanged: Bool { true }
}
