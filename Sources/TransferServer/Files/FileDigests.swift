import Digests
import HTTPSemantics
import SystemCalls
import UploadStorage

/// Digests of published files, computed when somebody asks and remembered by entity tag.
final class FileDigests: Sendable {
    private struct Key: Hashable {
        let entityTag: String
        let algorithm: DigestAlgorithm
    }

    private struct Cache {
        var values: [Key: [UInt8]] = [:]
        var order: [Key] = []
    }

    private let capacity = 1024
    private let cache = Monitor(Cache())

    /// - Returns: `nil` where the file cannot be read to its end.
    func value(of file: PublishedFile, _ algorithm: DigestAlgorithm) -> [UInt8]? {
        let key = Key(entityTag: file.attributes.entityTag.serialized, algorithm: algorithm)
        if let value = cache.withLock({ $0.values[key] }) { return value }
        guard let value = compute(file, algorithm) else { return nil }
        cache.withLock {
            guard $0.values.updateValue(value, forKey: key) == nil else { return }
            $0.order.append(key)
            if $0.order.count > capacity { $0.values[$0.order.removeFirst()] = nil }
        }
        return value
    }

    private func compute(_ file: PublishedFile, _ algorithm: DigestAlgorithm) -> [UInt8]? {
        var digest = RunningDigest(algorithm == .sha256 ? .sha256 : .sha512)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < file.attributes.size {
            guard let count = try? file.read(into: buffer, at: offset), count > 0 else { return nil }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return digest.finalized()
    }
}
