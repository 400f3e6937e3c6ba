import HTTPSemantics
import ResumableUpload

/// A server with one upload and without sockets and disk. The tested decisions determine its complete behavior.
struct ModelServer {
    /// A request with the content that actually arrives.
    struct Request {
        var dialect: Dialect
        var fields: Fields
        var framing: MessageFraming
        var content: [UInt8]
        /// Whether the connection breaks after `content`, before the end of the framing.
        var isInterrupted = false
        /// The maximum number of bytes that arrive in one piece.
        var piece = 7
    }

    let limits: UploadLimits
    private(set) var stored: [UInt8] = []
    private(set) var length: Int64?
    private(set) var answer: Response?
    /// Whether the target is processing the upload and has not answered yet.
    private(set) var isProcessing = false
    private(set) var isInvalid = false
    private(set) var exists = false
    private(set) var timesProcessed = 0

    init(limits: UploadLimits) { self.limits = limits }

    var state: UploadState {
        let phase: UploadState.Phase =
            if let answer { .complete(answer) } else if isProcessing { .processing } else { .receiving }
        return UploadState(offset: Int64(stored.count), length: length, phase: phase, limits: limits)
    }

    mutating func create(_ request: Request) -> Response? {
        let responses = UploadResponses(answering: request.fields)
        let creation = Creation(
            dialect: responses.dialect, isComplete: responses.dialect.completeness(of: request.fields),
            framing: request.framing, fields: request.fields)
        switch creation.decide(limits: limits) {
        case .refuse(let error): return responses.refused(error, limits: limits)
        case .plain: return Response(status: 200)
        case .create(let plan):
            exists = true
            return receiveContent(request, plan, responses, isCreation: true)
        }
    }

    mutating func append(_ request: Request) -> Response? {
        let responses = UploadResponses(answering: request.fields)
        guard exists, !isInvalid else { return responses.refused(.notFound) }
        let append: Append
        do {
            append = try Append(dialect: responses.dialect, fields: request.fields, framing: request.framing)
        } catch {
            return responses.refused(error, offset: state.offset, limits: limits)
        }
        switch append.decide(state: state) {
        case .refuse(let error): return responses.refused(error, offset: state.offset, limits: limits)
        case .replay(let response): return responses.finished(response, state: state, uploadLocation: nil)
        case .join:
            process()
            return responses.finished(answer ?? Response(status: 500), state: state, uploadLocation: nil)
        case .accept(let plan): return receiveContent(request, plan, responses, isCreation: false)
        }
    }

    mutating func retrieve(_ dialect: Dialect) -> Response {
        guard exists, !isInvalid else { return dialect.responses.refused(.notFound) }
        if dialect.completesOnRetrieval(state) {
            isProcessing = true
            process()
        }
        return dialect.responses.retrieved(state: state)
    }

    /// Ends the processing with the target's answer, if the target is processing the upload.
    mutating func process() {
        guard isProcessing else { return }
        timesProcessed += 1
        isProcessing = false
        answer = Response(status: 201, content: stored)
    }

    /// Receives the content and returns the response; `nil` if the client has disconnected or processing has begun.
    private mutating func receiveContent(
        _ request: Request, _ plan: ContentPlan, _ responses: UploadResponses, isCreation: Bool
    ) -> Response? {
        if plan.isLengthDetermined { length = plan.length }
        var counter = ContentCounter(plan)
        var remaining = request.content[...]
        while !remaining.isEmpty {
            let piece = remaining.prefix(request.piece)
            remaining = remaining.dropFirst(request.piece)
            switch counter.receive(piece.count) {
            case .accept: stored += piece
            case .exceedsLength(let length):
                isInvalid = true
                return responses.refused(.lengthExceeded(length: length), offset: state.offset, limits: limits)
            case .exceedsMaxSize(let limit):
                return responses.refused(.uploadTooLarge(limit: limit), offset: state.offset, limits: limits)
            case .exceedsMaxContent(let limit, let accepted):
                stored += piece.prefix(accepted)
                return responses.refused(.appendTooLarge(limit: limit), offset: state.offset, limits: limits)
            }
        }
        if request.isInterrupted { return nil }
        switch counter.end() {
        case .part:
            return isCreation ? responses.created(location: "/u/1", state: state) : responses.appended(state: state)
        case .short:
            return responses.refused(.inconsistentLength(detail: "They differ."), offset: state.offset, limits: limits)
        case .complete(let finalLength):
            length = finalLength
            isProcessing = true
            return nil
        }
    }
}
