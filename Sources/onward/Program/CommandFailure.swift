import CommandLineInterface
import Foundation
import HTTPSemantics
import ResumableTransfer

/// The reason why a command ends, with a message for the user.
struct CommandFailure: Error, Sendable {
    var status: ExitStatus
    /// A stable code for programs.
    var code: String
    var message: String
    /// The status of the response that caused the failure, if one did.
    var response: Status?
}

extension CommandFailure {
    init(_ status: ExitStatus, _ code: String, _ message: String) {
        self.init(status: status, code: code, message: message, response: nil)
    }

    init(_ error: OptionError) {
        self.init(.usage, "usage", DisplayText.printable(error.message))
    }

    init(_ error: TransferError) {
        var message = error.message
        let causes = [error.response.flatMap { ResponseReason.of($0) }, error.failureReason]
        let reasons = causes.compactMap { $0 }.filter { !$0.isEmpty }
        if !reasons.isEmpty { message += " Reason: \(reasons.joined(separator: "; "))" }
        self.init(
            status: ExitStatus(error), code: error.code.rawValue, message: DisplayText.printable(message),
            response: error.status)
    }
}

extension CommandFailure {
    /// The failure to open a source. A source that cannot be opened has the same status as a missing one (sysexits.h:
    /// EX_NOINPUT).
    init(source error: TransferError) {
        self.init(error)
        status = .noSource
    }

    /// The failure because of a response after which the same request is not sent again.
    /// - Parameter action: what the server has done: "rejected the content".
    init(_ response: TransferResponse, action: String) {
        let code = TransferError.Code(rejection: response.status)
        let reason = ResponseReason.of(response).map { " Reason: \($0)" } ?? ""
        self.init(
            status: ExitStatus(code), code: code.rawValue,
            message: "The server \(action) (\(response.status.rawValue)).\(reason)", response: response.status)
    }
}

extension ExitStatus {
    init(_ error: TransferError) {
        let isUnauthorized = error.code == .proxyRefused && error.status?.isUnauthorized == true
        self = isUnauthorized ? .notAllowed : ExitStatus(error.code)
    }

    /// The exit status of a command that ends with this error.
    init(_ code: TransferError.Code) {
        self =
            switch code {
            case .paused, .cancelled, .shutDown, .hostNotFound, .cannotConnect, .proxyFailed, .connectionLost,
                .timedOut,
                .serverUnavailable, .unexpectedResponse, .inUse:
                .tryAgain
            case .insecureConnection, .offsetConflict, .refused, .preconditionFailed, .gone, .tooLarge, .offsetLost,
                .offsetImpossible,
                .locationChanged, .locationUnusable, .digestMismatch, .resumptionUnsupported, .tooManyRedirects,
                .insecureRedirect, .protocolViolation, .proxyRefused:
                .unavailable
            case .unauthorized: .notAllowed
            case .noSuchSource: .noSource
            case .sourceChanged: .sourceChanged
            case .sourceUnavailable, .destinationUnusable, .storageUnusable, .resumeDataInvalid, .authorizationFailed:
                .inputOutput
            case .invalidRequest: .usage
            case .resumeDataUsed, .internalFailure: .internalFailure
            }
    }

    /// Returns the status of a command with several transfers: a permanent failure has priority over an interruption.
    static func worse(_ left: ExitStatus, _ right: ExitStatus) -> ExitStatus {
        if left == .done { return right }
        return left == .tryAgain && right != .done ? right : left
    }

    /// Returns the status of a command for a folder. An interruption has priority, because running the command again
    /// helps; among permanent failures the one with the highest number.
    static func worst(_ left: ExitStatus, _ right: ExitStatus) -> ExitStatus {
        if left == .tryAgain || right == .tryAgain { return .tryAgain }
        return left.rawValue > right.rawValue ? left : right
    }
}

/// The reason that a server states in its response, for messages.
enum ResponseReason {
    /// `detail` or `title` of a problem document (RFC 9457), in one line; `nil` for any other content.
    static func of(_ response: TransferResponse) -> String? {
        of(content: response.content, fields: response.fields)
    }

    static func of(content: [UInt8], fields: Fields) -> String? {
        guard let type = fields["Content-Type"].flatMap({ MediaType(parsing: $0) }),
            type.essence == ProblemDetails.mediaType, content.count <= 64 << 10,
            let document = try? JSONDecoder().decode(Document.self, from: Data(content)),
            let text = document.detail ?? document.title, !text.isEmpty
        else { return nil }
        return DisplayText.printable(String(text.prefix(300)))
    }

    /// The first line of content that is text.
    static func firstLine(of response: TransferResponse) -> String? {
        guard let type = response.fields["Content-Type"].flatMap({ MediaType(parsing: $0) }), type.type == "text"
        else { return nil }
        let line = response.content.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        return line.isEmpty ? nil : DisplayText.printable(String(String(decoding: line, as: UTF8.self).prefix(300)))
    }

    private struct Document: Decodable {
        var title: String?
        var detail: String?
    }
}
