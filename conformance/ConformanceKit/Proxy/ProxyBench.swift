import HTTPSemantics
import SystemCalls

/// The client and the upstream server of the harness, with the tested proxy between them. A test of one property of
/// the proxy is a probe. Only one thread may use a bench.
final class ProxyBench {
    let settings: ProxySettings
    let endpoint: Endpoint
    /// The transcript of the current probe.
    private(set) var transcript = Transcript()
    private let observations = Observations()
    private let listener: FileDescriptor
    /// The port of the scripted upstream.
    let upstreamPort: UInt16
    /// A name that differs between runs, so that requests of an earlier run are not confused with those of this run.
    private let run = String(UInt64(SystemClock.realtimeNanoseconds()) & 0xFFFF_FFFF, radix: 36)
    private var probes = 0

    /// The request field that contains the name of the probe.
    static let probeField = "Conformance-Probe"

    /// - Throws: ``RunFailure`` if the settings are invalid, or the port is not free.
    convenience init(_ settings: ProxySettings, port: UInt16) throws {
        let address = SocketAddress.tcp(host: settings.upstreamAddress, port: port)
        let socket: ListeningSocket
        do throws(Errno) {
            socket = try ListeningSocket(address)
        } catch {
            throw RunFailure("cannot listen on \(address): \(address.explanation(of: error))")
        }
        guard case .tcp(_, let chosen) = socket.address else { throw RunFailure("the upstream has no port") }
        try self.init(settings, FileDescriptor(owning: socket.release()), chosen)
    }

    private init(_ settings: ProxySettings, _ listener: FileDescriptor, _ port: UInt16) throws {
        self.settings = settings
        self.listener = listener
        upstreamPort = port
        guard let endpoint = Endpoint(settings.url, trusting: settings.trust) else {
            throw RunFailure("'\(settings.url)' is not a URL of the form http://host[:port]/path or https://…")
        }
        self.endpoint = endpoint
    }

    /// Returns a bench with the same upstream that tests the proxy at another URL.
    func bench(for url: String) throws -> ProxyBench {
        var other = settings
        other.url = url
        return try ProxyBench(other, listener, upstreamPort)
    }

    var timeout: Duration { settings.timeout }

    /// Begins a probe, with a new transcript and a new name for its requests.
    func begin() {
        transcript = Transcript()
        probes += 1
    }

    /// The name by which the upstream recognizes requests of the current probe.
    private var name: String { "\(run)-\(probes)" }

    /// Returns a request of the current probe.
    func request(
        _ method: String, _ fields: [(String, String)] = [], _ content: Request.Content = .none
    ) -> Request {
        let target = endpoint.target.replacing("{name}", with: name)
        return Request(method, target, [(Self.probeField, name)] + settings.fields + fields, content)
    }

    /// Returns a request with `Upload-Complete: ?1` that creates an upload.
    func creation(_ content: Request.Content) -> Request {
        request(
            settings.method, [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1")], content)
    }

    func connect() throws(WireFailure) -> RawConnection {
        try RawConnection(
            endpoint, timeout: timeout + .seconds(3), transcript: transcript, observer: observations)
    }

    /// Waits until the proxy forwards the request of the current probe to the upstream.
    /// - Returns: `nil` if it does not arrive in time.
    func awaitRequest(within limit: Duration? = nil) -> UpstreamConnection? {
        let deadline = Deadline(in: limit ?? timeout)
        while !deadline.isOver {
            do {
                let socket = try ConnectedSocket.accept(from: listener, until: deadline.nanoseconds)
                let connection = try UpstreamConnection(socket, transcript: transcript, until: deadline)
                if connection.head.fields[Self.probeField] == name || connection.head.target.contains(name) {
                    return connection
                }
                // The request is a health check, or belongs to another probe.
                connection.answer(200)
            } catch {
                continue
            }
        }
        return nil
    }
}
