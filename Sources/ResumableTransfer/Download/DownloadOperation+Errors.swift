import HTTPSemantics
import ResumableUpload
import SystemCalls

extension DownloadOperation {
    private var response: TransferResponse? { driver.response }
    private var lastFailure: TransferError? { driver.lastFailure }

    static func destinationError(_ error: Errno) -> TransferError {
        TransferError(.destinationUnusable, "The file cannot be written.", underlying: "\(error)")
    }

    /// The error that interrupts the download for a while.
    func error(of reason: DownloadInterruption) -> TransferError {
        switch reason {
        case .connection, .unreachable, .unusableConnection:
            lastFailure ?? TransferError(.connectionLost, "The content ended before its end.")
        case .stall: lastFailure ?? TransferError(.timedOut, "No data was transferred during the stall timeout.")
        case .status(let status):
            TransferError(
                .serverUnavailable, "The server cannot serve the request now (\(status)).", status: status,
                response: response)
        case .unexpected(let status):
            TransferError(
                .unexpectedResponse, "The server sent something other than the file: \(unexpectedContent(status)).",
                status: status, response: response)
        case .unfit:
            TransferError(.protocolViolation, "The responses of the server contradict each other.", response: response)
        }
    }

    /// What the last response was, for people: "200, text/html, 26 bytes, without a validator".
    private func unexpectedContent(_ status: Status) -> String {
        guard let response else { return "\(status)" }
        let head = DownloadResponseHead(status: status, fields: response.fields)
        let described = DownloadRepresentation(head)
        let type = described.mediaType.map { MediaType(parsing: $0)?.essence ?? "an invalid media type" }
        let size = head.contentLength.map { "\($0) bytes" } ?? "\(response.content.count) bytes or more"
        let isValidated = described.entityTag != nil || described.lastModified != nil
        return "\(status), \(type ?? "no media type"), \(size), \(isValidated ? "with" : "without") a validator"
    }

    /// The error that ends the download.
    func error(of failure: DownloadFailure) -> TransferError {
        switch failure {
        case .refused(let status):
            TransferError(.refused, "The server refused the download (\(status)).", status: status, response: response)
        case .unauthorized(let status):
            TransferError(
                .unauthorized,
                status == 407
                    ? "The proxy asks for credentials (\(status))."
                    : "The server does not allow the download (\(status)).", status: status,
                response: response)
        case .tooManyRedirects:
            TransferError(.tooManyRedirects, "There were too many redirections.", response: response)
        case .insecureRedirect:
            TransferError(.insecureRedirect, "The server redirected to a less secure URI.", response: response)
        case .violation(let text):
            TransferError(.protocolViolation, "The server's response could not be understood.", underlying: text)
        case .exhausted(let reason): error(of: reason)
        }
    }
}
