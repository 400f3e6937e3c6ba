import ObjectStorage
import Synchronization
import SystemCalls
import UploadStorage

/// What all blobs of a process share: the object storage, the threads that write to it and read from it, and the memory
/// for buffers.
final class PieceStorage: Sendable {
    let objects: any ObjectStore
    let ledger: PieceLedger
    let budget: BufferBudget
    let limits: PieceLimits
    private let session: @Sendable () throws(StoreError) -> Int64
    /// Records objects as garbage.
    private let recordGarbage: @Sendable ([String]) -> Void
    private let lastObject = Atomic<Int64>(0)
    private let outcomes = Monitor(Outcomes())
    private let writing: WorkQueue
    private let reading: WorkQueue
    private let deleting: WorkQueue

    /// The times of the last requests to store objects, in monotonic nanoseconds.
    private struct Outcomes {
        /// The storage has responded.
        var responded = Int64.min
        /// The storage has not stored the object in time.
        var failed = Int64.min
    }

    /// - Parameters:
    ///   - session: returns the number of the current session of this process. Throws if it has none, or must not store
    ///     objects.
    ///   - recordGarbage: records objects that no row names or will ever name, so that they are deleted later.
    init(
        objects: any ObjectStore, ledger: PieceLedger, limits: PieceLimits, writers: Int,
        session: @escaping @Sendable () throws(StoreError) -> Int64,
        recordGarbage: @escaping @Sendable ([String]) -> Void = { _ in }
    ) throws(Errno) {
        self.objects = objects
        self.recordGarbage = recordGarbage
        self.ledger = ledger
        self.session = session
        self.limits = limits
        budget = BufferBudget(limit: limits.memory)
        writing = try WorkQueue(name: "store-pieces", threads: writers)
        reading = try WorkQueue(name: "read-ahead", threads: max(2, writers / 2))
        deleting = try WorkQueue(name: "delete-objects", threads: 1)
    }

    /// Ends the threads after the queued work.
    func close() {
        writing.close()
        reading.close()
        deleting.close()
    }

    /// Stores bytes under a key that is never used again.
    /// - Parameter deadline: monotonic nanoseconds.
    func put(_ content: [UInt8], of blob: String, until deadline: Int64 = .max) throws(Errno) -> String {
        do throws(Errno) {
            let session: Int64
            do throws(StoreError) { session = try self.session() } catch { throw Errno(error) }
            let number = lastObject.wrappingAdd(1, ordering: .relaxed).newValue
            let key = "data/\(blob)/\(session)-\(number)"
            do throws(ObjectError) { try objects.put(key, content, until: deadline) } catch {
                if case .unavailable = error {
                    // The object may exist, or begin to exist later.
                    deleting.enqueue { [recordGarbage] in recordGarbage([key]) }
                }
                throw Errno(error)
            }
            outcomes.withLock { $0.responded = SystemClock.monotonicNanoseconds() }
            return key
        } catch {
            outcomes.withLock { outcomes in
                let now = SystemClock.monotonicNanoseconds()
                if error == .timedOut { outcomes.failed = now } else { outcomes.responded = now }
            }
            throw error
        }
    }

    /// Returns an error if a request has failed since `time` (monotonic nanoseconds), and no request has got a response
    /// in the five seconds before that failure, or after it. So work that was queued before the failure fails at once,
    /// and does not wait until its own request fails in the same way.
    func failure(since time: Int64) -> Errno? {
        outcomes.withLock { outcomes in
            guard outcomes.failed >= time, outcomes.failed > outcomes.responded else { return nil }
            return outcomes.responded == .min || outcomes.failed - outcomes.responded >= 5_000_000_000 ? .timedOut : nil
        }
    }

    /// Reads a part of an object. Throws `notFound` if the object does not have all of these bytes.
    /// - Parameter deadline: monotonic nanoseconds.
    func get(
        _ key: String, at offset: Int, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64 = .max
    ) throws(ObjectError) {
        let range = Int64(offset)..<Int64(offset + buffer.count)
        // A shorter object has lost its end.
        guard try objects.get(key, range, into: buffer, until: deadline) == buffer.count else { throw .notFound }
    }

    /// Deletes objects that no row names or will ever name. After a failure, or the end of the process, a collector
    /// deletes them.
    func discard(_ keys: [String]) {
        if keys.isEmpty { return }
        deleting.enqueue { [objects, recordGarbage] in
            do throws(ObjectError) { try objects.delete(keys) } catch { recordGarbage(keys) }
        }
    }

    func write(_ work: @escaping @Sendable () -> Void) -> Bool { writing.enqueue(work) }

    func readAhead(_ work: @escaping @Sendable () -> Void) -> Bool { reading.enqueue(work) }
}

extension Errno {
    /// The error of a blob for an error of the object storage.
    init(_ error: ObjectError) {
        switch error {
        case .unavailable: self = .timedOut
        case .refused: self = .accessDenied
        case .notFound: self = .inputOutput
        }
    }

    /// The error of a blob if there is no session with which objects may be stored.
    fileprivate init(_ error: StoreError) {
        switch error {
        case .unavailable: self = .timedOut
        case .io(let error, _): self = error
        default: self = .accessDenied
        }
    }
}
