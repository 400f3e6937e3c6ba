import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer
import UploadStorage

/// Sends one complete upload to the origin of a route. Blocks the thread of the connection.
struct UploadForwarder {
    private static let firstPause: Int64 = 100_000_000
    private static let maxPause: Int64 = 1_000_000_000

    private let handler: GatewayHandler
    private let upload: ReceivedUpload
    private let forwarding: ForwardingContext
    private var route: Route { handler.route }

    init(_ handler: GatewayHandler, _ upload: ReceivedUpload, _ forwarding: ForwardingContext) {
        self.handler = handler
        self.upload = upload
        self.forwarding = forwarding
    }

    func run() throws -> Response {
        let end = SystemClock.deadline(in: route.retryTime)
        var pause = Self.firstPause
        while true {
            switch try attempt() {
            case .responded(let response, let setCookie):
                for value in setCookie { forwarding.unstoredFields.append("Set-Cookie", value) }
                return response
            case .responseTooLarge: return OriginDelivery.responseTooLarge
            case .unknown(let reason) where !route.isRepeatable:
                throw TargetInterrupted(reason)
            case .unknown(let reason):
                throw TargetUnavailable("\(route.origin) sent no complete response: \(reason)", retryAfter: .seconds(1))
            case .unavailable(let reason, let wait):
                try markEffect(false)
                let now = SystemClock.monotonicNanoseconds()
                let next = now + max(pause, wait?.nanoseconds ?? 0)
                guard next < end, self.pause(until: next) else {
                    throw TargetUnavailable("\(route.origin): \(reason)", retryAfter: wait ?? .seconds(1))
                }
                pause = min(2 * pause, Self.maxPause)
            }
        }
    }

    /// Records durably whether the request may have an effect, unless it can be repeated anyway.
    private func markEffect(_ canHaveEffect: Bool) throws(TargetUnavailable) {
        guard !route.isRepeatable else { return }
        do throws(StoreError) {
            if canHaveEffect { try upload.beginEffect() } else { try upload.withdrawEffect() }
        } catch {
            throw TargetUnavailable("the state of the upload cannot be stored: \(error)", retryAfter: .seconds(5))
        }
    }

    /// Waits, unless the client has gone or the server stops. Returns whether the time has passed.
    private func pause(until time: Int64) -> Bool {
        while SystemClock.monotonicNanoseconds() < time {
            guard forwarding.isAwaited(), !Task.isCancelled else { return false }
            SystemClock.pause(nanoseconds: min(50_000_000, max(time - SystemClock.monotonicNanoseconds(), 0)))
        }
        return true
    }

    private func attempt() throws -> OriginDelivery.Outcome {
        guard let directory = route.handoverDirectory else {
            try markEffect(true)
            return try send(nil)
        }
        let file: SharedFile
        do throws(StoreError) { file = try upload.share(in: directory) } catch {
            throw TargetUnavailable("the file cannot be handed over: \(error)", retryAfter: .seconds(5))
        }
        let result = Result {
            try markEffect(true)
            return try send(file)
        }
        // The file exists only during the request. Every later attempt uses another path, so an application that still
        // has the old one cannot move the file of a request that it did not get.
        let isMoved = !file.remove()
        return try result.get().considering(isMoved: isMoved)
    }

    /// - Parameter file: the file that the origin gets instead of the content.
    private func send(_ file: SharedFile?) throws -> OriginDelivery.Outcome {
        let hasContent = file == nil && upload.length > 0
        var fields = fields
        if let file { fields.appendFile(file, length: upload.length) }
        let request = OriginRequest(
            method: upload.method, target: upload.target.reference, fields: fields,
            content: hasContent ? .range(from: 0, count: upload.length) : .empty,
            source: hasContent ? UploadContent(upload) : nil, isRepeatable: false,
            isNewConnectionNeeded: !route.isRepeatable)
        let delivery = OriginDelivery(handler.client, request)
        guard let outcome = delivery.run(isCanceled: { Task.isCancelled }, report: { forwarding.report = $0 }) else {
            // The delivery was canceled, and the request may have had an effect. So the call ends as interrupted, not as
            // failed.
            throw CancellationError()
        }
        return outcome
    }

    /// The fields of the request: those of the creation, and the credentials of the request that completes the upload.
    private var fields: Fields {
        var fields = upload.fields
        let forwarded = ForwardedMessage.requestFields(forwarding.requestFields, isUpload: true)
        for field in forwarding.credentials where forwarded.contains(field.name) {
            fields.append(field.name, field.value)
        }
        fields = handler.outgoing(
            ForwardedMessage.requestFields(fields, isUpload: true), forwarding, principal: upload.principal)
        if let digest = upload.verifiedDigest { fields.append("Onward-Digest", digest) }
        fields.append("Onward-Upload", upload.idempotencyKey)
        if route.isRepeatable { fields.append("Idempotency-Key", "\"\(upload.idempotencyKey)\"") }
        return fields
    }
}

extension Fields {
    /// Appends the fields that replace the content of a request.
    mutating func appendFile(_ file: SharedFile, length: Int64) {
        append("Onward-Path", file.path)
        append("Onward-Length", String(length))
    }
}

/// The bytes of a complete upload.
final class UploadContent: UploadSource {
    private let upload: ReceivedUpload
    let length: Int64?

    init(_ upload: ReceivedUpload) {
        self.upload = upload
        length = upload.length
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        do { return try upload.read(into: buffer, at: offset) } catch { throw .failed(error) }
    }

    func acknowledged(upTo offset: Int64) {}
}
