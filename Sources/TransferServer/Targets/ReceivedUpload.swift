import HTTPSemantics
import UploadStorage

/// A complete representation for its target. Valid only during `complete(_:)`.
public struct ReceivedUpload: Sendable {
    /// The target of the upload.
    public let target: Target
    /// The method of the request that created the upload.
    public let method: Method
    /// The principal that created the upload.
    public let principal: String
    /// The fields of the creating request that ``TargetHandler/storedFields`` names.
    public let fields: Fields
    /// The length of the representation in bytes.
    public let length: Int64
    /// Whether an existing resource may be replaced, as in ``UploadProposal/mayReplace``.
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

    /// Reads bytes of the representation from `offset` on.
    /// - Returns: The number of bytes read, which is smaller than the buffer only at the end of the representation.
    /// - Throws: `StoreError` if the bytes cannot be read.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        try lease.read(into: buffer, at: offset)
    }
}
