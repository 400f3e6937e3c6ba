import ObjectStorage
import PostgreSQL
import Synchronization
import SystemCalls
import UploadStorage

/// The resources that all blobs of a process share: the object storage, the threads that write to it and read from it,
/// the memory for buffers, and the database with the names of the objects.
final class PieceStorage: Sendable {
    let objects: any ObjectStore
    private let database: Database
    let ledger: PieceLedger
    let budget: BufferBudget
    let limits: PieceLimits
    private let session: @Sendable () throws(StoreError) -> Int64
    private let lastObject = Atomic<Int64>(0)
    private let state = Monitor(State())
    private let writing: WorkQueue
    private let reading: WorkQueue
    private let deleting: WorkQueue

    private struct State {
        /// The time of the last request to store an object to which the storage has responded, in monotonic nanoseconds.
        var responded = Int64.min
        /// The time of the last request after which the storage had not stored the object in time.
        var failed = Int64.min
        /// The time after which no more objects are deleted, because the storage is closed.
        var lastDeletion = Int64.max

        func failure(since time: Int64) -> Errno? {
            guard failed >= time, failed > responded else { return nil }
            return responded == .min || failed - responded >= 5_000_000_000 ? .timedOut : nil
        }
    }

    /// - Parameters:
    ///   - session: returns the number of the current session of this process. Throws if it has none, or must not store
    ///     objects.
    init(
        objects: any ObjectStore, database: Database, ledger: PieceLedger, limits: PieceLimits, writers: Int,
        session: @escaping @Sendable () throws(StoreError) -> Int64
    ) throws(Errno) {
        self.objects = objects
        self.database = database
        self.ledger = ledger
        self.session = session
        self.limits = limits
        budget = BufferBudget(limit: limits.memory)
        writing = try WorkQueue(name: "store-pieces", threads: writers)
        reading = try WorkQueue(name: "read-ahead", threads: max(2, writers / 2))
        deleting = try WorkQueue(name: "delete-objects", threads: 1)
    }

    /// Ends the threads after the queued work. Objects that cannot be deleted soon remain until a collector deletes them as
    /// orphans of the session.
    func close() {
        state.withLock { $0.lastDeletion = SystemClock.deadline(in: .seconds(2)) }
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
                // The object may exist, or begin to exist later.
                if case .unavailable = error { ledger.add(unneeded: [key]) }
                throw Errno(error)
            }
            state.withLock { $0.responded = SystemClock.monotonicNanoseconds() }
            return key
        } catch {
            state.withLock { state in
                let now = SystemClock.monotonicNanoseconds()
                if error == .timedOut { state.failed = now } else { state.responded = now }
            }
            throw error
        }
    }

    /// Returns an error if a request has failed since `time` (monotonic nanoseconds), and no request has got a response
    /// in the five seconds before that failure, or after it. So work that was queued before the failure fails at once,
    /// and does not wait until its own request fails in the same way.
    func failure(since time: Int64) -> Errno? { state.withLock { $0.failure(since: time) } }

    /// Reads a part of an object. Throws `notFound` if the object does not have all of these bytes.
    /// - Parameter deadline: monotonic nanoseconds.
    func get(
        _ key: String, at offset: Int, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64 = .max
    ) throws(ObjectError) {
        let range = Int64(offset)..<Int64(offset + buffer.count)
        // A shorter object has lost its end.
        guard try objects.get(key, range, into: buffer, until: deadline) == buffer.count else { throw .notFound }
    }

    /// Runs a statement of ``PieceLimits`` that lists pieces.
    func list(_ statement: DatabaseStatement) throws(Errno) -> [Piece] {
        do throws(DatabaseError) { return [Piece](try database.run(statement)) } catch { throw error.errno }
    }

    /// Deletes objects that no row names or will ever name. If the storage fails, they become garbage later.
    func discard(_ keys: [String]) {
        if keys.isEmpty { return }
        let queuedAt = SystemClock.monotonicNanoseconds()
        deleting.enqueue { [objects, ledger, state] in
            let canDelete = state.withLock { state in
                state.failure(since: queuedAt) == nil && SystemClock.monotonicNanoseconds() < state.lastDeletion
            }
            guard canDelete else { return ledger.add(unneeded: keys) }
            do throws(ObjectError) { try objects.delete(keys) } catch { ledger.add(unneeded: keys) }
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
