import CommandLineInterface
import ResumableTransfer

/// `onward health`: asks a server whether it is ready; for containers and supervisors, which have no other client.
enum HealthCommand {
    private static let ownServer = "http://127.0.0.1:8080/readyz"

    static let command = ClientCommand(
        "health", "ask a server whether it is ready", usage: "[OPTIONS] [URL]",
        """
        Asks for URL (\(ownServer)) and ends with 0 if the answer is a
        success, with 69 if it is another one, and with 75 if there is none within ten seconds.
        """,
        options: ClientSettings.healthOptions,
        sections: [
            ManualSection(
                "Exit status",
                [
                    .terms([
                        ("0", "the server is ready"),
                        ("64", "wrong usage"),
                        ("69", "it answers that it is not"),
                        ("74", "the certificates of --cacert cannot be read"),
                        ("75", "it does not answer"),
                    ])
                ])
        ], common: [])

    static func run(_ arguments: [String]) -> ExitStatus {
        command.run(arguments, check: check) { url, settings, report, _ in await ask(url, settings, report) }
    }

    private static func check(_ settings: ClientSettings, _ operands: [String]) throws(OptionError) -> TransferURL {
        guard operands.count <= 1 else { throw OptionError("unexpected '\(operands[1])'; one URL is asked") }
        return try TransferURL(operands.first ?? ownServer)
    }

    private static func ask(
        _ url: TransferURL, _ settings: ClientSettings, _ report: TransferReport
    ) async -> ExitStatus {
        var settings = settings
        settings.stallTimeout = 10
        do throws(CommandFailure) {
            let client = try settings.client()
            let response: TransferResponse
            do throws(TransferError) {
                response = try await client.fetch(TransferRequest(url.identity))
            } catch {
                await client.shutDown()
                throw CommandFailure(error)
            }
            await client.shutDown()
            guard response.status.isSuccessful else {
                let reason = ResponseReason.of(response) ?? ResponseReason.firstLine(of: response)
                throw CommandFailure(
                    .unavailable, "refused",
                    "\(url.shown) answers \(response.status)" + (reason.map { ": " + $0 } ?? ""))
            }
            report.note("\(url.shown) answers \(response.status)")
            return .done
        } catch {
            return report.ended(error)
        }
    }
}
