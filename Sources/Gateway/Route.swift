import HTTPSemantics
import UploadStorage

/// The paths that belong to an application behind this server, and how requests for them are forwarded.
public struct Route: Sendable, Hashable {
    /// The clients that may use a route.
    public enum Access: Sendable, Hashable {
        /// The clients that the authorizer of the server accepts.
        case authorized
        /// All clients. The application authorizes them by itself.
        case open
    }

    /// The path below which all requests belong to the route, with a slash at the beginning and none at the end; `/` for
    /// all paths that the server does not use itself.
    public var path: String
    /// The application.
    public var origin: Origin
    /// The clients that may use the route.
    public var access = Access.authorized
    /// Whether the application can get the request of a complete upload more than once. It recognizes a repetition by
    /// its `Idempotency-Key`.
    public var isRepeatable = false
    /// The maximum time in which no byte moves between this server and the origin.
    public var timeout: Duration = .seconds(60)
    /// The maximum time for which one request of a client waits for an origin that cannot be reached or responds with
    /// 503. After this time the client gets 503, and can repeat its request.
    public var retryTime: Duration = .seconds(10)
    /// The directory in which the application gets complete uploads by path: its request has the absolute path of the file
    /// in `Onward-Path`, the length in `Onward-Length`, and no content. `nil`: the request has the content.
    ///
    /// An absolute path of visible ASCII characters. The directory belongs to the user of the server and to a group of
    /// the application, its mode is 2710 or stricter, and it is in the mount of the data directory. No other route uses it.
    /// `StoreConfiguration.retainUnknownOutcomes(of:ownPrefix:)` makes the store verify this when it is opened.
    public var handoverDirectory: String?
    /// The maximum number of bytes of the origin's response to a complete upload, which is stored.
    public static let maxStoredContent = 1 << 20

    /// Creates a route with the default settings.
    /// - Throws: ``SettingError`` if the path is invalid.
    public init(path: String, origin: Origin) throws(SettingError) {
        self.init(decodedPath: try Self.decoded(path), origin: origin)
    }

    private init(decodedPath: String, origin: Origin) {
        path = decodedPath
        self.origin = origin
    }

    private static func decoded(_ path: String) throws(SettingError) -> String {
        guard path.hasPrefix("/"), let segments = try? PathSegments(decoding: path) else {
            throw SettingError(
                "'\(path)' is not a path: a path begins with a slash and has no '.', '..' or encoded slash")
        }
        return "/" + segments.segments.joined(separator: "/")
    }

    /// The path without slashes at its ends, as `Server` expects prefixes.
    public var prefix: String { String(path.dropFirst()) }

    /// The decoded segments of the path.
    package var segments: [String] { path.split(separator: "/").map(String.init) }
}

extension Route {
    /// Parses a line such as `/upload=http://127.0.0.1:3000,access=open,timeout=30s`. The settings are
    /// separated by commas or white space.
    /// - Parameters:
    ///   - line: the path, the origin and the settings.
    ///   - duration: parses a duration; returns `nil` if it is invalid.
    /// - Throws: ``SettingError`` that describes all mistakes of the line.
    public init(parsing line: String, duration: (String) -> Duration?) throws(SettingError) {
        let words = SettingWords(parsing: line)
        guard let first = words.first, let sign = first.firstIndex(of: "=") else {
            throw SettingError("'\(line)' is not a route: give PATH=ORIGIN, such as /upload=http://127.0.0.1:3000")
        }
        var mistakes: [String] = []
        var result: Route?
        var origin: Origin?
        do throws(SettingError) { origin = try Origin(parsing: String(first[first.index(after: sign)...])) } catch {
            mistakes.append(error.description)
        }
        do throws(SettingError) {
            let path = try Self.decoded(String(first[..<sign]))
            if let origin { result = Route(decodedPath: path, origin: origin) }
        } catch { mistakes.insert(error.description, at: 0) }
        for setting in words.settings {
            let (word, name, value) = (setting.word, setting.name, setting.value)
            if setting.isRepeated { mistakes.append("\(name) is given twice") }
            switch name {
            case "access":
                if value == "open" { result?.access = .open } else { mistakes.append("'\(word)': use access=open") }
            case "repeat":
                if value == "safe" {
                    result?.isRepeatable = true
                } else {
                    mistakes.append("'\(word)': use repeat=safe")
                }
            case "timeout", "retry":
                guard let time = duration(value), time > .zero || name == "retry" else {
                    mistakes.append("'\(word)': give a duration, such as \(name)=30s")
                    continue
                }
                if name == "timeout" { result?.timeout = time } else { result?.retryTime = time }
            case "handover":
                if StoreConfiguration.isHandoverDirectory(value) {
                    result?.handoverDirectory = value
                } else {
                    mistakes.append(
                        "'\(word)': give the absolute path of a directory, such as handover=/srv/onward/upload, in visible"
                            + " ASCII characters, without empty, '.' and '..' components")
                }
            default:
                mistakes.append("'\(word)' is not a setting of a route: use access, handover, repeat, timeout or retry")
            }
        }
        guard let result, mistakes.isEmpty else { throw SettingError(mistakes.joined(separator: "; ")) }
        self = result
    }
}
