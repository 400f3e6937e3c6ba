import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The configuration of a store.
public struct StoreConfiguration: Sendable {
    /// The failures that a reported offset survives.
    public var durability: Durability
    /// The time for which a complete or invalid upload is kept, in whole seconds.
    public var keepCompleted: Duration
    /// Free bytes of the file system below which new uploads are refused; nil: 1 GiB, at most a tenth of the disk.
    public var minFree: Int64?
    /// The maximum number of unfinished uploads of one principal; nil: no limit.
    public var maxUploadsPerPrincipal: Int?
    /// Maximum size of one principal's unfinished uploads and published files together; nil: no limit.
    public var quotaPerPrincipal: Int64?
    /// The maximum number of bytes of one upload that are only in the page cache. If there are more, the sender is
    /// slowed down to the speed of the disk.
    public var writeBackWindow: Int64
    /// The lifetime of an unfinished upload, in whole seconds. After a downtime that seems longer, nothing expires for
    /// an hour.
    public var lifetime: Duration
    /// The system's clocks. Ages and expiry are measured with them, see ``UploadStore/time``.
    package var clock: @Sendable () -> ClockReading = { SystemClock.reading() }
    /// The final response of an upload that its target was processing when the process ended.
    public var interruptedResponse: Response
    /// The replacement for ``Publication/validated`` when recovery completes a publication.
    public var validated: @Sendable (Response, PublishedFile.Attributes) -> Response
    /// The time for which the cancellation of an upload waits for a running handler, and for which
    /// ``UploadStore/close()`` waits for all running handlers.
    public var processingWait: Duration

    /// Creates a configuration. Parameters that are omitted have the defaults of `onward serve`.
    public init(
        durability: Durability = .acknowledged,
        keepCompleted: Duration = .seconds(86_400),
        minFree: Int64? = nil,
        maxUploadsPerPrincipal: Int? = nil,
        quotaPerPrincipal: Int64? = nil,
        writeBackWindow: Int64 = 16 << 20,
        lifetime: Duration = .seconds(604_800),
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
        self.interruptedResponse = interruptedResponse
        self.validated = validated
        self.processingWait = processingWait
    }

    func effectiveMinFree(total: Int64) -> Int64 { minFree ?? min(1 << 30, total / 10) }
}

/// The failures that an acknowledged offset survives.
public enum Durability: String, Sendable, Hashable, CaseIterable {
    /// The end of the process and the loss of power: data is synchronized before the offset is recorded.
    case acknowledged
    /// The end of the process alone.
    case relaxed
}
