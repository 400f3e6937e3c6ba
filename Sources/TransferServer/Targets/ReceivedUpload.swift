import HTTPSemantics
import UploadStorage

/// A whole representation that waits for its target. Valid during `complete(_:)` alone.
public struct ReceivedUpload: Sendable {
    public let target: Target
    /// Method of the request that created the upload.
    public let method: Method
    public let principal: String
    /// The fields of the creating request that ``TargetHandler/storedFields`` names.
    public let fields: Fields
    /// Bytes of the representation.
    public let length: Int64
    /// Whether whoever completed the upload may replace what exists, as ``UploadProposal/mayReplace``.
    public let mayReplace: Bool

    private let lease: UploadLease

    init(target: Target, upload: NewUpload, length: Int64, mayReplace: Bool, lease: UploadLease) {
        self.target = target
        method = upload.method
        principal = upload.principal
        fields = upload.fields
        self.length = length
        self.mayReplace = mayReplace
        self.lease = lease
    }

    /// Reads bytes of the representation.
    /// - Returns: How many were read: fewer than the buffer takes at the end of the representation alone.
    /// - Throws: `StoreError` where the bytes cannot be read.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        try lease.read(into: buffer, at: offset)
    }
}
