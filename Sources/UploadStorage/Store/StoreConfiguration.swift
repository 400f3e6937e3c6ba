import HTTPSemantics
import SystemCalls

/// The configuration of a store.
public struct StoreConfiguration: Sendable {
    /// The failures that a reported offset survives.
    public var durability: Durability
    /// The time for which a complete or invalid upload is kept, in complete seconds.
    public var keepCompleted: Duration
    /// Free bytes of the file system below which new uploads are refused; nil: 1 GiB, or a tenth of the disk if that is
    /// less.
    public var minFree: Int64?
    /// The maximum number of unfinished uploads of one principal; nil: no limit.
    public var maxUploadsPerPrincipal: Int?
    /// Maximum size of one principal's unfinished uploads and published files together; nil: no limit.
    public var quotaPerPrincipal: Int64?
    /// The maximum number of bytes of one upload that are only in the page cache. If there are more, the sender is
    /// slowed down to the speed of the disk.
    public var writeBackWindow: Int64
    /// The lifetime of an unfinished upload from its creation, in complete seconds. After a downtime that seems longer,
    /// nothing expires for an hour.
    public var lifetime: Duration
    /// The system's clocks. Ages and expiry are measured with them, see ``UploadStore/time``.
    package var clock: @Sendable () -> ClockReading = { SystemClock.reading() }
    /// Returns the numbers of a storage that several servers share; nil for a data directory.
    package var sharedStatistics: @Sendable () -> SharedStorageStatistics? = { nil }
    /// The final response of an upload that its target was processing when the process ended.
    public var interruptedResponse: Response
    /// Returns the end of an upload whose processing was interrupted; `nil`: the upload gets ``interruptedResponse``.
    package var interruption: @Sendable (UploadRecord) -> Interruption? = { _ in nil }

    /// The end of an upload whose processing was interrupted after it may have had an effect.
    package struct Interruption: Sendable {
        /// The final response.
        package var response: Response
        /// A description with which the bytes of the upload are retained.
        package var description: [UInt8]

        package init(response: Response, description: [UInt8]) {
            self.response = response
            self.description = description
        }
    }
    /// The directories in which applications get complete files by path, each for one application: absolute paths of
    /// directories that exist, in the mount of the data directory. If one of them cannot be used, the store is not opened.
    public var handoverDirectories: [String] = []
    /// Whether changes of uploads are recorded as events, which a program delivers (`EventDelivery` of the product
    /// Gateway).
    public var shouldRecordEvents: Bool
    /// The replacement for ``Publication/validated`` when recovery completes a publication.
    public var validated: @Sendable (Response, PublishedFile.Attributes) -> Response
    /// The time for which the cancellation of an upload waits for a running handler, and for which
    /// ``UploadStore/close()`` waits for all running handlers.
    public var processingWait: Duration
    /// The time for which a request waits until another store has released the upload.
    package var acquisitionWait: Duration = .seconds(3)

    /// Creates a configuration. The default limits and times are those of `onward serve`.
    public init(
        durability: Durability = .acknowledged,
        keepCompleted: Duration = .seconds(86_400),
        minFree: Int64? = nil,
        maxUploadsPerPrincipal: Int? = nil,
        quotaPerPrincipal: Int64? = nil,
        writeBackWindow: Int64 = 16 << 20,
        lifetime: Duration = .seconds(604_800),
        shouldRecordEvents: Bool = false,
        interruptedResponse: Response = Response(status: 500),
        validated: @escaping @Sendable (Response, PublishedFile.Attributes) -> Response = { response, _ in
            response
        },
        processingWait: Duration = .seconds(5)
    ) {
        self.durability = durability
        self.keepCompleted = keepCompleted
        self.minFree = minFree
        self.maxUploadsPerPrincipal = maxUploadsPerPrincipal
        self.quotaPerPrincipal = quotaPerPrincipal
        self.writeBackWindow = writeBackWindow
        self.lifetime = lifetime
        self.shouldRecordEvents = shouldRecordEvents
        self.interruptedResponse = interruptedResponse
        self.validated = validated
        self.processingWait = processingWait
    }

    /// Whether the text can be one of ``handoverDirectories``: it is absolute, in visible ASCII characters, and has no
    /// empty, `.` and `..` components.
    package static func isHandoverDirectory(_ path: String) -> Bool { HandoverDirectory.isValid(path) }

    func effectiveMinFree(total: Int64) -> Int64 { minFree ?? min(1 << 30, total / 10) }
}
