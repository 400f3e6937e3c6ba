import HTTPSemantics
import ResumableUpload

extension UploadOperation {
    private var response: TransferResponse? { driver.response }
    private var lastFailure: TransferError? { driver.lastFailure }
    private var isResumable: Bool { driver.plan.input.isResumable }

    /// The error that interrupts the upload for a while.
    func error(of reason: UploadInterruption) -> TransferError {
        switch reason {
        case .connection, .unreachable, .unusableConnection:
            lastFailure ?? TransferError(.connectionLost, "The connection was lost.")
        case .stall: lastFailure ?? TransferError(.timedOut, "No data was transferred during the stall timeout.")
        case .status(let status):
            TransferError(
                .serverUnavailable, "The server cannot serve the request now (\(status)).", status: status,
                response: response)
        case .offsetConflict:
            TransferError(.offsetConflict, "The server refused the offset that it had reported.", response: response)
        case .expiry: TransferError(.gone, "The lifetime of the upload passed before it was complete.")
        }
    }

    /// The error that ends the upload.
    func error(of failure: UploadFailure) -> TransferError {
        switch failure {
        case .refused(let status):
            TransferError(.refused, "The server refused the upload (\(status)).", status: status, response: response)
        case .unauthorized(let status):
            TransferError(
                .unauthorized,
                status == 407
                    ? "The proxy asks for credentials (\(status))."
                    : "The server does not allow the upload (\(status)).", status: status, response: response)
        case .gone(let status):
            TransferError(.gone, "The server does not know the upload any more.", status: status, response: response)
        case .expired: TransferError(.gone, "The lifetime of the upload has passed.")
        case .tooLarge(let limit):
            TransferError(
                .tooLarge, "The server accepts \(limit.map { "\($0) bytes" } ?? "less") at most.", response: response)
        case .offsetLost(let acknowledged, let reported):
            TransferError(
                .offsetLost, "The server lost bytes: it had acknowledged \(acknowledged), and now \(reported).")
        case .offsetImpossible(let offset):
            TransferError(.offsetImpossible, "The server reported the offset \(offset), beyond the end.")
        case .offsetUnknown(let status):
            TransferError(
                .protocolViolation, "The server did not report how much of the upload it has (\(status)).",
                status: status, response: response)
        case .answerLost:
            TransferError(
                .protocolViolation, "The server ended the upload before it had everything, and its response was lost.")
        case .resumptionUnsupported(let status):
            TransferError(
                .resumptionUnsupported,
                "The server does not support resumable uploads (\(status)). An empty or incomplete file may have been stored.",
                status: status, response: response)
        case .locationChanged: TransferError(.locationChanged, "The server named two resources for one upload.")
        case .locationUnusable(.insecure):
            TransferError(.locationUnusable, "The server named an upload resource that is less secure.")
        case .locationUnusable:
            TransferError(.locationUnusable, "The server named an upload resource of another origin.")
        case .digestMismatch:
            TransferError(.digestMismatch, "The server does not have the bytes of the source.", response: response)
        case .sourceUnavailable(let offset): sourceError(at: offset)
        case .sourceChanged: TransferError(.sourceChanged, "The source has changed.")
        case .exhausted(let reason): error(of: reason)
        case .notResumable(let reason): error(of: reason)
        case .redirectLoop: TransferError(.tooManyRedirects, "There were too many redirections.", response: response)
        case .cancelled: cancellationError
        }
    }

    private var cancellationError: TransferError {
        // If nothing but the deletion is asked for, one that the server did not confirm is no success.
        guard !isResumable, machine.resumption != nil else {
            return TransferError(
                .cancelled, "The upload was cancelled.", response: isResumable ? nil : response)
        }
        guard lastFailure == nil, let status = response?.status else {
            return lastFailure ?? TransferError(.connectionLost, "The connection was lost.")
        }
        let isForbidden = [401, 403, 407].contains(status.rawValue)
        return TransferError(
            isForbidden ? .unauthorized : status.isTransient ? .serverUnavailable : .refused,
            "The server did not delete the upload (\(status)).", response: response)
    }

    private func sourceError(at offset: Int64) -> TransferError {
        if !isSourceUnchanged {
            return TransferError(.sourceChanged, "The source has changed while it was sent.")
        }
        return TransferError(
            .sourceUnavailable, "The source could not be read at \(offset).", underlying: lastFailure?.underlying)
    }
}
