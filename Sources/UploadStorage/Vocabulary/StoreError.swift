import SystemCalls

/// An error of the store. `code` is its stable name in problem documents, logs and metrics.
#if hasAttribute(nonexhaustive)
    @nonexhaustive
#endif
public enum StoreError: Error, Sendable, Hashable {
    /// The upload or file does not exist, or the upload belongs to another principal.
    case notFound
    /// The upload was taken over by another request, or the store is closed.
    case superseded
    /// The upload is permanently invalid, or it has expired.
    case gone(reason: String)
    /// The upload has its final response.
    case completed
    /// The bytes would exceed the length of the representation. None of them were stored.
    case lengthExceeded(length: Int64)
    /// The operation is not allowed in the current state, for example because staging has already begun.
    case invalidState(String)
    /// The target resource still processes the upload after the waiting time.
    case processing
    /// The principal has as many unfinished uploads as the server allows.
    case tooManyUploads(limit: Int)
    /// The bytes would exceed the quota of the principal. None of them were stored. The limit is in bytes.
    case quotaExceeded(limit: Int64)
    /// The file system is full, or too little space would remain free; in the second case the shortage contains the
    /// numbers.
    case insufficientSpace(SpaceShortage?)
    /// A system call has failed. The text names the operation of the store.
    case io(Errno, during: String)
    /// The database or the storage of bytes cannot be reached now. The text explains why.
    case unavailable(String)
    /// Another server uses the upload, and has not released it in time.
    case heldElsewhere
    /// Bytes that had been acknowledged are missing.
    case stateLost
    /// A precondition was not met.
    case preconditionFailed
    /// The name of the file belongs to a directory.
    case targetIsDirectory
    /// The name belongs to a symbolic link, a socket or another object that is not a regular file.
    case targetIsSpecial
    /// A part of the path before the last name is a file.
    case parentIsFile
    /// The path of the file has more bytes than the catalog allows.
    case pathTooLong(limit: Int)
    /// The name of the file is in use, and so are all names that the store derives from it.
    case noFreeName
    /// Another server uses the data directory.
    case inUse
    /// The system cannot start a thread for the store.
    case cannotStartThread(Errno)
    /// The catalog was written by a newer version.
    case newerSchema(Int)
    /// The file with the name of the catalog belongs to another program.
    case foreignData(String)
    /// The catalog is damaged.
    case damaged(String)
    /// The data directory cannot be used as it is; the text explains why, and what to do.
    case unusableRoot(String)
    /// Directories in which applications get complete files cannot be used as they are; the text explains why, and what
    /// to do, in a line for each directory.
    case unusableHandover(String)

    /// The stable code in problem details, logs and metrics.
    public var code: String {
        switch self {
        case .notFound: "upload-not-found"
        case .superseded: "upload-superseded"
        case .gone: "upload-deactivated"
        case .completed: "completed-upload"
        case .lengthExceeded: "upload-length-exceeded"
        case .invalidState: "invalid-state"
        case .processing: "upload-processing"
        case .tooManyUploads: "too-many-uploads"
        case .quotaExceeded: "quota-exceeded"
        case .insufficientSpace: "insufficient-space"
        case .io: "storage-error"
        case .unavailable: "storage-unavailable"
        case .heldElsewhere: "upload-in-use"
        case .stateLost: "state-lost"
        case .preconditionFailed: "precondition-failed"
        case .targetIsDirectory: "target-is-directory"
        case .targetIsSpecial: "target-is-no-file"
        case .parentIsFile: "parent-is-file"
        case .pathTooLong: "path-too-long"
        case .noFreeName: "no-free-name"
        case .inUse: "data-directory-in-use"
        case .cannotStartThread: "cannot-start-thread"
        case .newerSchema: "newer-schema"
        case .foreignData: "foreign-data"
        case .damaged: "damaged-catalogue"
        case .unusableRoot: "unusable-data-directory"
        case .unusableHandover: "unusable-handover-directory"
        }
    }
}

extension StoreError: CustomStringConvertible {
    /// A sentence for the operator, for example in the log.
    public var description: String {
        switch self {
        case .notFound: "the upload or file does not exist"
        case .superseded: "another request uses the upload, or the store is closed"
        case .gone(let reason): "the upload is no longer valid: \(reason)"
        case .completed: "the upload has its final response"
        case .lengthExceeded(let length): "the bytes would exceed the length of \(length) bytes"
        case .invalidState(let reason), .foreignData(let reason), .unusableHandover(let reason): reason
        case .processing: "the upload is still being processed"
        case .tooManyUploads(let limit): "the principal already has \(limit) unfinished uploads, the maximum"
        case .quotaExceeded(let limit): "the bytes would exceed the quota of \(limit) bytes"
        case .insufficientSpace(let shortage): shortage.map { "too little space: \($0)" } ?? "the disk is full"
        case .io(let error, let operation): "cannot \(operation): \(error)"
        case .unavailable(let reason): "the storage cannot be reached: \(reason)"
        case .heldElsewhere: "another server still uses the upload"
        case .stateLost: "bytes that had been acknowledged are missing"
        case .preconditionFailed: "a precondition of the request is not met"
        case .targetIsDirectory: "the name of the file belongs to a directory"
        case .targetIsSpecial: "the name belongs to something that is neither a file nor a directory"
        case .parentIsFile: "a part of the path before the last name is a file"
        case .pathTooLong(let limit): "the path of the file has more than \(limit) bytes"
        case .noFreeName: "the name of the file is in use, and so are all names that are derived from it"
        case .inUse: "another server uses the data directory"
        case .cannotStartThread(let error): "cannot start a thread for the store: \(error)"
        case .newerSchema(let version): "a newer version of onward wrote the catalog (schema \(version))"
        case .damaged(let reason): "the catalog is damaged: \(reason)"
        case .unusableRoot(let reason): "the data directory cannot be used: \(reason)"
        }
    }

    /// Whether the catalog cannot be used any more.
    var isDamage: Bool {
        switch self {
        case .damaged, .foreignData: true
        default: false
        }
    }

    /// Whether the cause is on the server and not in the request.
    public var isForOperator: Bool {
        switch self {
        case .io, .unavailable, .insufficientSpace, .cannotStartThread, .stateLost, .damaged, .foreignData,
            .newerSchema,
            .unusableRoot, .unusableHandover, .invalidState:
            true
        case .notFound, .superseded, .gone, .completed, .lengthExceeded, .processing, .tooManyUploads, .quotaExceeded,
            .preconditionFailed, .targetIsDirectory, .targetIsSpecial, .parentIsFile, .pathTooLong, .noFreeName,
            .inUse, .heldElsewhere:
            false
        }
    }
}

extension StoreError {
    /// Converts the error of a system call or of a blob area. A full disk or quota becomes ``insufficientSpace(_:)``, and
    /// storage that does not respond (`ETIMEDOUT`) becomes ``unavailable(_:)``.
    package static func failure(_ error: Errno, during operation: String) -> StoreError {
        switch error {
        case .noSpace, .quotaExceeded: .insufficientSpace(nil)
        case .timedOut: .unavailable("cannot \(operation)")
        default: .io(error, during: operation)
        }
    }
}

/// Starts threads, and converts the error of a system call to a ``StoreError``.
func startingThreads<Result>(_ body: () throws(Errno) -> Result) throws(StoreError) -> Result {
    do throws(Errno) { return try body() } catch { throw .cannotStartThread(error) }
}

/// Runs system calls, and converts their errors to a ``StoreError``.
func translating<Result>(
    _ operation: String, _ body: () throws(Errno) -> Result
) throws(StoreError) -> Result {
    do throws(Errno) { return try body() } catch { throw .failure(error, during: operation) }
}

/// The numbers that explain to the operator why there is not enough free space.
public struct SpaceShortage: Sendable, Hashable {
    /// The data directory.
    public var root: String
    /// Free bytes.
    public var free: Int64
    /// Bytes that have to stay free.
    public var kept: Int64
    /// The announced length of a new upload, for which there must be space, too; otherwise 0.
    public var announced: Int64
}

extension SpaceShortage: CustomStringConvertible {
    /// The numbers in a sentence for the operator.
    public var description: String {
        let upload = announced > 0 ? " (the new upload announced \(announced))" : ""
        return "\(root) has \(free) bytes free\(upload), but \(kept) must stay free (--min-free)"
    }
}
