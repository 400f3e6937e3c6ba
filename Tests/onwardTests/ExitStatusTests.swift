import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import Testing

@testable import onward

@Suite("Exit statuses")
struct ExitStatusTests {
    @Test("Every error code of the library has its exit status", arguments: TransferError.Code.allCases)
    func codes(code: TransferError.Code) {
        let expected: [TransferError.Code: Int32] = [
            .paused: 75, .cancelled: 75, .shutDown: 75, .hostNotFound: 75, .cannotConnect: 75, .proxyFailed: 75,
            .connectionLost: 75, .timedOut: 75, .serverUnavailable: 75, .unexpectedResponse: 75,
            .insecureConnection: 69, .offsetConflict: 69,
            .refused: 69, .preconditionFailed: 69, .gone: 69, .tooLarge: 69, .offsetLost: 69, .offsetImpossible: 69,
            .locationChanged: 69,
            .locationUnusable: 69, .proxyRefused: 69, .digestMismatch: 69, .resumptionUnsupported: 69,
            .tooManyRedirects: 69,
            .insecureRedirect: 69, .protocolViolation: 69, .unauthorized: 77, .noSuchSource: 66, .sourceChanged: 65,
            .sourceUnavailable: 74, .destinationUnusable: 74, .storageUnusable: 74, .resumeDataInvalid: 74,
            .authorizationFailed: 74, .invalidRequest: 64, .inUse: 75, .resumeDataUsed: 70, .internalFailure: 70,
        ]
        #expect(onward.ExitStatus(code).rawValue == expected[code])
        // Every interruption has the status for "run the same command again".
        if TransferError(code, "").canRetry { #expect(onward.ExitStatus(code) == .tryAgain) }
    }

    @Test(
        "The refusal of a proxy with 401, 403 or 407 has the status of missing permission",
        arguments: [401, 403, 407, 404, 501])
    func proxies(number: Int) {
        let error = TransferError(.proxyRefused, "No.", status: Status(rawValue: number))
        #expect(CommandFailure(error).status == ([401, 403, 407].contains(number) ? .notAllowed : .unavailable))
    }

    @Test(
        "With several files a permanent failure takes precedence over an interruption",
        arguments: [
            (onward.ExitStatus.done, onward.ExitStatus.done, onward.ExitStatus.done), (.done, .tryAgain, .tryAgain),
            (.tryAgain, .done, .tryAgain),
            (.tryAgain, .noSource, .noSource), (.noSource, .tryAgain, .noSource), (.noSource, .notAllowed, .noSource),
        ])
    func several(left: onward.ExitStatus, right: onward.ExitStatus, result: onward.ExitStatus) {
        #expect(onward.ExitStatus.worse(left, right) == result)
    }

    @Test("The message of a failure contains the server's reason, but no control characters of terminals")
    func reasons() {
        let content = Array(#"{"type":"about:blank","title":"No","detail":"Too \u001b[1mbig\nby far"}"#.utf8)
        let response = TransferResponse(
            status: 413, fields: ["Content-Type": "application/problem+json"], content: content)
        let failure = CommandFailure(
            TransferError(.tooLarge, "It is too large.", response: response, underlying: Errno.noSpace))
        #expect(failure.message == "It is too large. Reason: Too ?[1mbig by far; No space left on device")
        #expect(failure.status == .unavailable && failure.code == "too-large" && failure.response == 413)
    }

    @Test("The message of a system error contains its description, but not its name")
    func systemReasons() {
        let failure = CommandFailure(TransferError(.noSuchSource, "No.", underlying: Errno.noSpace))
        #expect(failure.message == "No. Reason: No space left on device")
    }

    @Test("docs/command-line.md has every code in the row of its status", arguments: TransferError.Code.allCases)
    func documented(code: TransferError.Code) throws {
        // No command cancels a running transfer or shuts down its client.
        guard code != .cancelled && code != .shutDown else { return }
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        let text = try String(contentsOf: root.appending(path: "docs/command-line.md"), encoding: .utf8)
        let row = text.split(separator: "\n").first { $0.hasPrefix("| \(onward.ExitStatus(code).rawValue) |") }
        #expect(row?.contains("`\(code.rawValue)`") == true)
    }

    @Test("The message of an interruption contains the server's reason")
    func interruption() {
        let content = Array(#"{"title":"No","detail":"The disk is full."}"#.utf8)
        let response = TransferResponse(
            status: 507, fields: ["Content-Type": "application/problem+json"], content: content)
        let error = TransferError(
            .serverUnavailable, "The server cannot serve the request now (507).", response: response)
        #expect(
            ProgressMessages.interrupted(error, retryIn: .milliseconds(700))
                == "Interrupted: The server cannot serve the request now (507). Reason: The disk is full. Trying again in 1 s."
        )
    }
}
