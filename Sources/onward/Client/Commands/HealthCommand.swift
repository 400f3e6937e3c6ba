import CommandLineInterface
import ResumableTransfer
import SystemCalls

/// `onward health`: checks whether a server is ready, for containers and supervisors without another HTTP client.
enum HealthCommand {
    /// The server and the path to request.
    private enum HealthTarget: Sendable {
        case url(TransferURL)
        case path(String, LocalHealthClient)
    }

    static let command = ClientCommand(
        "health", "check whether a server is ready", usage: ["[OPTIONS] [URL|PATH]"],
        """
        Requests URL, or PATH of the server on this machine [default: /readyz]. /healthz checks
        that the process responds: if it does not, a restart may help. /readyz also checks the
        disk, or with --catalog the database and the object storage.

        Exit status: 0 a 2xx response; 64 wrong usage; 69 any other status, or no TLS connection
        to URL; 74 the certificates of --cacert cannot be read; 75 the server cannot be reached,
        or does not respond within ten seconds.

        The address of the server on this machine is the first one in ONWARD_LISTEN [default:
        127.0.0.1:8080]. TLS is used if ONWARD_TLS_CERT and ONWARD_TLS_KEY are set. The certificate
        of this server is not verified: --cacert has an effect only with URL. If ONWARD_OWN_PREFIX
        is set, /healthz and /readyz are below this path, as for the server.
        """,
        options: ClientSettings.healthOptions,
        sections: [
            ManualSection(
                "Exit status",
                [
                    .terms([
                        ("0", "the response is 2xx"),
                        ("64", "wrong usage"),
                        ("69", "the response has another status, or a TLS connection to URL cannot be made"),
                        ("74", "the certificates of --cacert cannot be read"),
                        ("75", "the server cannot be reached, or does not respond within ten seconds"),
                    ])
                ])
        ], common: [])

    static func run(_ arguments: [CommandArgument]) -> ExitStatus {
        command.run(arguments, check: check) { target, settings, report, _ in
            await checkHealth(target, settings, report)
        }
    }

    private static func check(_ settings: ClientSettings, _ operands: [CommandArgument]) throws(OptionError)
        -> HealthTarget
    {
        guard operands.count <= 1 else {
            throw OptionError("unexpected '\(operands[1])': health accepts one URL or path")
        }
        let operand = try operands.first?.requireText() ?? "/readyz"
        guard operand.hasPrefix("/") else {
            do throws(OptionError) { return .url(try TransferURL(operand)) } catch {
                throw OptionError(
                    "'\(operand)' is neither a URL such as http://host/readyz nor a path such as /healthz")
            }
        }
        guard operand.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw OptionError("'\(operand)' is not a path such as /readyz")
        }
        let server = try LocalHealthClient(Environment.variables)
        return .path(server.path(for: operand), server)
    }

    private static func checkHealth(
        _ target: HealthTarget, _ settings: ClientSettings, _ report: TransferReport
    ) async -> ExitStatus {
        do throws(CommandFailure) {
            let shown: String
            let response: TransferResponse
            switch target {
            case .url(let url):
                shown = url.shown
                response = try await answer(of: url, settings)
            case .path(let path, let server):
                shown = server.shown(path)
                response = try server.get(path, until: SystemClock.monotonicNanoseconds() + 10_000_000_000)
            }
            guard response.status.isSuccessful else {
                let reason = ResponseReason.of(response) ?? ResponseReason.firstLine(of: response)
                throw CommandFailure(
                    .unavailable, "refused",
                    "\(shown) responded with \(response.status)" + (reason.map { ": " + $0 } ?? ""))
            }
            report.note("\(shown) responded with \(response.status)")
            return .done
        } catch {
            return report.ended(error)
        }
    }

    private static func answer(
        of url: TransferURL, _ settings: ClientSettings
    ) async throws(CommandFailure) -> TransferResponse {
        var settings = settings
        settings.stallTimeout = 10
        let client = try settings.client()
        do throws(TransferError) {
            let response = try await client.send(TransferRequest(url.identity)).response().get().response
            await client.shutDown()
            return response
        } catch {
            await client.shutDown()
            throw CommandFailure(error)
        }
    }
}
