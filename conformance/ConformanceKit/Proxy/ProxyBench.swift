import HTTPSemantics
import SystemCalls

/// A proxy between a client and an upstream that are both ours. Used by one thread.
final class ProxyBench {
    let settings: ProxySettings
    let endpoint: Endpoint
    /// What goes over the wire in the present probe.
    private(set) var transcript = Transcript()
    private let observations = Observations()
    private let listener: FileDescriptor
    /// Where the scripted upstream is.
    let upstreamPort: UInt16
    private let run = String(UInt64(SystemClock.realtimeNanoseconds()) & 0xFFFF_FFFF, radix: 36)
    private var probes = 0

    static let probeField = "Conformance-Probe"

    /// - Throws: ``RunFailure`` where the settings make no sense, or the port is not free.
    convenience init(_ settings: ProxySettings, port: UInt16) throws {
        let socket: ListeningSocket
        do throws(Errno) {
            socket = try ListeningSocket(.tcp(host: settings.upstreamAddress, port: port))
        } catch {
            throw RunFailure("nobody can listen on \(settings.upstreamAddress):\(port): \(error)")
        }
        guard case .tcp(_, let chosen) = socket.address else { throw RunFailure("no port") }
        try self.init(settings, FileDescriptor(owning: socket.release()), chosen)
    }

    private init(_ settings: ProxySettings, _ listener: FileDescriptor, _ port: UInt16) throws {
        self.settings = settings
        self.listener = listener
        upstreamPort = port
        guard let endpoint = Endpoint(settings.url, trusting: settings.trust) else {
            throw RunFailure("“\(settings.url)” is no URL of the form http://host[:port]/path or https://…")
        }
        self.endpoint = endpoint
    }

    /// The same upstream behind a proxy at another URL.
    func leading(to url: String) throws -> ProxyBench {
        var other = settings
        other.url = url
        return try ProxyBench(other, listener, upstreamPort)
    }

    var timeout: Duration { settings.timeout }

    /// What belongs together: a transcript and a name for its requests.
    func begin() {
        transcript = Transcript()
        probes += 1
    }

    /// The name by which requests of the present probe are known at the upstream.
    private var name: String { "\(run)-\(probes)" }

    /// A request of the present probe.
    func request(
        _ method: String, _ fields: [(String, String)] = [], _ content: Request.Content = .none
    ) -> Request {
        let target = endpoint.target.replacing("{name}", with: name)
        return Request(method, target, [(Self.probeField, name)] + settings.fields + fields, content)
    }

    /// A creation that is to complete with its content.
    func creation(_ content: Request.Content) -> Request {
        request(
            settings.method, [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1")], content)
    }

    func connect() throws(WireFailure) -> RawConnection {
        try RawConnection(
            endpoint, timeout: timeout + .seconds(3), transcript: transcript, observer: observations)
    }

    /// The request of the present probe as it reaches the upstream; nil where it does not in time.
    func awaitRequest(within limit: Duration? = nil) -> UpstreamConnection? {
        let deadline = Deadline(in: limit ?? timeout)
        while !deadline.isOver {
            do {
                let socket = try ConnectedSocket.accept(from: listener, until: deadline.nanoseconds)
                let connection = try UpstreamConnection(socket, transcript: transcript, until: deadline)
                if connection.head.fields[Self.probeField] == name || connection.head.target.contains(name) {
                    return connection
                }
                // A health check, or what is left of another probe.
                connection.answer(200)
            } catch {
                continue
            }
        }
        return nil
    }
}
