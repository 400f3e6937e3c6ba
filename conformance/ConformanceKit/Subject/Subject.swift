import Foundation
import SystemCalls

/// The server under test: its URL, and the properties that ``SubjectProbe`` determined.
final class Subject {
    let settings: ServerSettings
    let endpoint: Endpoint
    /// The profile of the cases that do not specify a profile.
    var defaultProfile: Profile = .interop(8)
    /// The versions that the subject supports.
    var supportedProfiles: [Profile] = []
    /// Whether the subject announces a creation with 104; `nil` until that was probed.
    var isAnnouncing: Bool?
    /// The limits in the response to OPTIONS.
    var limits: [String: Int64] = [:]
    /// The source of the URL at which a finished file can be read; `nil` if it cannot be read.
    var downloadSource: DownloadSource?
    /// Starts and kills the server; `nil` if the harness did not start it.
    let control: (any SubjectControl)?
    private var names = 0
    private let run: String

    init(settings: ServerSettings, endpoint: Endpoint, control: (any SubjectControl)? = nil) {
        self.settings = settings
        self.endpoint = endpoint
        self.control = control
        run = String(UInt64(SystemClock.realtimeNanoseconds()) & 0xFFFF_FFFF, radix: 36)
    }

    var method: String { settings.method }
    var timeout: Duration { settings.timeout }
    var extraFields: [(String, String)] { settings.fields }

    /// Returns the request with the credentials of the second principal; `nil` if there is no second principal.
    func byOther(_ request: Request) -> Request? {
        guard !settings.otherFields.isEmpty else { return nil }
        var request = request
        for (name, _) in settings.otherFields { request = request.without(name) }
        request.fields += settings.otherFields
        return request
    }

    /// Returns the request target of a new creation, in which `{name}` is replaced by a unique name.
    func newTarget() -> String {
        guard let range = endpoint.target.range(of: "{name}") else { return endpoint.target }
        names += 1
        return endpoint.target.replacingCharacters(in: range, with: "conformance-\(run)-\(names)")
    }

    /// The smallest size of content that the limits of the subject allow.
    var smallestContentSize: Int { Int(clamping: max(10, limits["min-append-size"] ?? 0, limits["min-size"] ?? 0)) }

    /// Returns the URL at which the file of a finished upload can be read; `nil` if it is unknown.
    func fileURL(of response: Response, to request: Request, in profile: Profile) -> Endpoint? {
        // Up to version 6 Location is the URL of the upload, and only Content-Location can be the URL of the file.
        let isUpload = downloadSource == .location && defaultProfile.rank > 6 && profile.rank <= 6
        return (isUpload ? .contentLocation : downloadSource)?.fileURL(in: response, to: request, at: endpoint)
    }

    /// Returns whether the limits allow a request with `count` bytes of content.
    func allows(_ count: Int) -> Bool {
        Int64(count) <= min(limits["max-size"] ?? .max, limits["max-append-size"] ?? .max)
    }
}

/// Starts and kills a server.
protocol SubjectControl: AnyObject {
    /// Starts the server and waits until it listens.
    func start() throws
    /// Kills the server with SIGKILL.
    func kill() throws
    /// The size in bytes of the file system in which the server stores uploads; `nil` if a case must not fill it up.
    var diskSize: Int64? { get }
}

/// The source of the URL of a finished file.
enum DownloadSource: String, CaseIterable {
    case contentLocation = "Content-Location"
    case location = "Location"
    case requestTarget = "the request target"

    func fileURL(in response: Response, to request: Request, at endpoint: Endpoint) -> Endpoint? {
        let base = endpoint.at(request.target)
        switch self {
        case .contentLocation: return response.single("Content-Location").flatMap { base.resolving($0) }
        case .location: return response.location.flatMap { base.resolving($0) }
        case .requestTarget: return base
        }
    }
}
