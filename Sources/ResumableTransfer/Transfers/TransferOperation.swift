import HTTPTransport
import HTTPSemantics
import ResumableUpload

/// The part of a transfer in which uploads and downloads differ: which request is sent next, and what its response
/// means.
///
/// Each operation owns the state machine of its protocol and the source or files. ``TransferDriver`` calls it, in one
/// task.
protocol TransferOperation: AnyObject {
    associatedtype Success: Sendable
    associatedtype Checkpoint: TransferCheckpoint
    associatedtype Input: Sendable
    associatedtype Machine: TransferMachine

    /// "upload" or "download", for messages.
    static var noun: String { get }
    /// The length in bytes of the representation of a planned transfer; `nil` while it is unknown.
    static func total(of plan: TransferPlan<Self>) -> Int64?
    /// The error for a result that is a failure of the transfer, because the target rejected the complete content;
    /// `nil` for any other result.
    static func rejection(of success: Success) -> TransferError?

    init(driver: TransferDriver<Self>)

    var machine: Machine { get set }

    /// Whether the operation is deleting the upload resource. Stop requests do not end the deletion.
    var isDeleting: Bool { get }

    /// Prepares everything that the first request needs.
    /// - Returns: the result, if an earlier run has done everything.
    func prepare() async throws(TransferError) -> Success?

    /// Handles a stop request before the next step.
    /// - Throws: the error that ends the transfer, unless the operation still has work to do.
    func handle(_ stop: StopRequest) throws(TransferError)

    /// The error of a transfer that ends because of `stop`; `nil` if it does not end immediately.
    func error(of stop: StopRequest) -> TransferError?

    /// The error that ends the transfer because of `failure`; `nil` if the general error text applies.
    func error(of failure: ClientFailure) -> TransferError?

    /// Does the work that remains after the last response.
    func finish(_ outcome: Machine.Outcome) async throws(TransferError) -> Success

    /// The checkpoint to resume from now; `nil` if there is none.
    var checkpoint: Checkpoint? { get }

    /// The position in the representation up to which an upload has sent bytes; `nil` for a download.
    var sentPosition: Int64? { get }

    /// Decides what is kept of a transfer that ends with `error`.
    func conclude(_ error: TransferError) async -> TransferConclusion<Checkpoint>

    /// Closes files.
    func close()

    // MARK: One exchange

    /// Waits until the source or the receiver of the content is ready for `request`.
    /// - Returns: whether the request can be sent unchanged. If not, the state machine has a next step, or a stop was
    ///   requested.
    func canSend(_ request: ClientRequest) async -> Bool

    /// The caller's fields that every request has.
    var callerFields: Fields { get }

    /// Restores the parts of a request that a caller's `authorize` must not change.
    func restore(_ authorized: inout TransferRequest, for request: ClientRequest)

    /// Called before `request` is sent.
    func willSend(_ request: ClientRequest, to uri: RequestURI)

    /// Completes the transport's request with the content and the receiver of the response.
    func complete(_ transport: inout TransportRequest, for request: ClientRequest)

    /// Handles an interim response.
    func interim(_ head: ClientResponseHead, _ exchange: TransportExchange) -> InterimReaction

    /// Handles an event of the running exchange. For an interim response it is called after ``interim(_:_:)``.
    func handle(_ event: TransportEvent, of request: ClientRequest, _ exchange: TransportExchange) async

    /// Handles the end of the exchange.
    /// - Parameter isAborted: whether ``interim(_:_:)`` has aborted it.
    func ended(
        _ result: TransportResult, of request: ClientRequest, from uri: RequestURI, isAborted: Bool
    ) async throws(TransferError)

    /// The fields of a response that an observer may see.
    func shownFields(of head: ClientResponseHead, from uri: RequestURI) -> Fields
}

/// The state machine of the protocol. The driver gets its steps from it, and the operation reports the responses to it.
protocol TransferMachine: Sendable {
    /// The result of the protocol's exchanges, before the operation has finished its own work.
    associatedtype Outcome: Sendable

    /// Returns the next step.
    /// - Parameter now: seconds since 1970.
    mutating func next(now: Int64) -> ClientStep<Outcome>

    /// The number of failed attempts since the last progress.
    var attempts: Int { get }

    /// Decides whether the transfer continues with other credentials after a 401 or 407.
    var credentials: CredentialRenewal { get set }

    /// Continues with other credentials.
    /// - Parameter isFresh: false if newer credentials than those of the last request already existed.
    mutating func credentialsRefreshed(isFresh: Bool)

    /// Whether a redirection with this status is followed.
    func follows(_ status: Status, to request: ClientRequest) -> Bool

    /// Makes a redirection the final response. The machine gets the redirection without its location.
    mutating func declineRedirection()
}

extension ClientUpload: TransferMachine {
    // A redirection without a location is final.
    mutating func declineRedirection() {}
}

/// The saved state of a transfer that has failed.
enum TransferConclusion<Checkpoint> {
    /// Another run can resume it from this checkpoint.
    case resumable(Checkpoint)
    /// Nothing can resume it. Its ticket is removed.
    case over
    /// This run has no resume data. Data of an earlier run stays valid.
    case nothing
}

extension TransferOperation {
    static func rejection(of success: Success) -> TransferError? { nil }

    func error(of stop: StopRequest) -> TransferError? { stopped(by: stop) }

    func error(of failure: ClientFailure) -> TransferError? { nil }

    /// The error of a transfer that has ended because of `stop`.
    func stopped(by stop: StopRequest) -> TransferError {
        switch stop {
        case .pause: TransferError(.paused, "The \(Self.noun) was paused.")
        case .cancel: TransferError(.cancelled, "The \(Self.noun) was canceled.")
        }
    }
}
