import Digests
import HTTPSemantics
import SystemCalls
import UploadStorage

/// Digests of published files, computed on request and cached by entity tag.
final class FileDigests: Sendable {
    private struct Key: Hashable {
        let entityTag: String
        let algorithm: DigestAlgorithm
    }

    private struct Cache {
        var values: [Key: [UInt8]] = [:]
        var order: [Key] = []
        var running: Set<Key> = []
    }

    private let capacity = 1024
    private let cache = Monitor(Cache())

    /// Returns the digest, which is computed only once for concurrent requests.
    ///
    /// - Parameter isWanted: returns whether the digest is still needed. It is called repeatedly while the file is
    ///   read, which can take minutes.
    /// - Returns: `nil` if the file cannot be read completely, or the digest is no longer wanted.
    func value(of file: PublishedFile, _ algorithm: DigestAlgorithm, while isWanted: () -> Bool) -> [UInt8]? {
        let key = Key(entityTag: file.attributes.entityTag.serialized, algorithm: algorithm)
        while isWanted() {
            let soon = SystemClock.monotonicNanoseconds() + 250_000_000
            let step = cache.wait(until: soon) { cache -> Step? in
                if let value = cache.values[key] { return .known(value) }
                return cache.running.insert(key).inserted ? .compute : nil
            }
            switch step {
            case .known(let value): return value
            case .compute: return compute(file, algorithm, as: key, while: isWanted)
            case nil: continue
            }
        }
        return nil
    }

    private enum Step {
        case known([UInt8])
        case compute
    }

    private func compute(
        _ file: PublishedFile, _ algorithm: DigestAlgorithm, as key: Key, while isWanted: () -> Bool
    ) -> [UInt8]? {
        let value = digest(of: file, algorithm, while: isWanted)
        cache.withLock {
            $0.running.remove(key)
            guard let value, $0.values.updateValue(value, forKey: key) == nil else { return }
            $0.order.append(key)
            if $0.order.count > capacity { $0.values[$0.order.removeFirst()] = nil }
        }
        cache.notifyAll()
        return value
    }

    private func digest(
        of file: PublishedFile, _ algorithm: DigestAlgorithm, while isWanted: () -> Bool
    ) -> [UInt8]? {
        var digest = RunningDigest(algorithm.hash)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < file.attributes.size {
            guard isWanted(), let count = try? file.read(into: buffer, at: offset), count > 0 else { return nil }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return digest.finalized()
    }
}
