import Foundation
import SystemCalls

/// What is verified: where it is, how it is spoken to, and what was found out about it before the first case.
final class Subject {
    let settings: ServerSettings
    let endpoint: Endpoint
    /// The profile of cases that are not about one.
    var base: Profile = .interop(8)
    /// The versions that it speaks.
    var spoken: [Profile] = []
    /// Whether a creation is announced by 104.
    var announces = false
    /// The limits that OPTIONS reports.
    var limits: [String: Int64] = [:]
    /// Where a finished file can be read; nil where it cannot.
    var download: DownloadSource?
    /// Starts and ends the server, where that is ours to do.
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

    /// The same request by another principal; nil where there is none.
    func byOther(_ request: Request) -> Request? {
        guard !settings.otherFields.isEmpty else { return nil }
        var request = request
        for (name, _) in settings.otherFields { request = request.without(name) }
        request.fields += settings.otherFields
        return request
    }

    /// The request target of a new creation: `{name}` of the URL becomes a name that no other has.
    func newTarget() -> String {
        guard let range = endpoint.target.range(of: "{name}") else { return endpoint.target }
        names += 1
        return endpoint.target.replacingCharacters(in: range, with: "conformance-\(run)-\(names)")
    }

    /// The least content that is above all limits of the subject.
    var part: Int { Int(clamping: max(10, limits["min-append-size"] ?? 0, limits["min-size"] ?? 0)) }

    /// Where the file of a finished upload can be read; nil if that is unknown.
    func place(of response: Response, to request: Request, in profile: Profile) -> Endpoint? {
        // Up to version 6 Location is the upload's, and the file is named by Content-Location if at all.
        let isUpload = download == .location && base.rank > 6 && profile.rank <= 6
        return (isUpload ? .contentLocation : download)?.place(in: response, to: request, at: endpoint)
    }

    /// Whether so many bytes may be uploaded in one request.
    func allows(_ count: Int) -> Bool {
        Int64(count) <= min(limits["max-size"] ?? .max, limits["max-append-size"] ?? .max)
    }
}

/// How a server is started, killed and started again.
protocol SubjectControl: AnyObject {
    /// Starts it and waits until it listens.
    func start() throws
    /// Ends it at once, as a crash would.
    func kill() throws
    /// How many bytes its storage holds, where that is little enough to fill it.
    var diskSize: Int64? { get }
}
