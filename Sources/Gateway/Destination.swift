/// Another program that this server calls: at a URL, or as a process.
public enum Destination: Sendable, Hashable, CustomStringConvertible {
    /// A URL with http or https, or the target at a Unix socket.
    case url(DestinationURL)
    /// The absolute path of a program that is run once for each call.
    case program(String)

    /// Parses `http://HOST[:PORT]/PATH`, the same with `https`, `unix:/SOCKET:/PATH`, or the absolute path of a program.
    /// - Throws: ``SettingError`` that describes the mistake.
    public init(parsing text: String) throws(SettingError) {
        if text.hasPrefix("/") {
            self = .program(text)
        } else {
            guard let url = try? DestinationURL(parsing: text) else {
                throw SettingError(
                    "'\(text)' is not a destination: give http://HOST:PORT/PATH, https://HOST:PORT/PATH,"
                        + " unix:/SOCKET:/PATH or the absolute path of a program")
            }
            self = .url(url)
        }
    }

    /// See ``Origin/caFile``; `nil` for a program.
    public var caFile: String? {
        get { if case .url(let url) = self { url.caFile } else { nil } }
        set {
            guard case .url(var url) = self else { return }
            url.caFile = newValue
            self = .url(url)
        }
    }

    /// The URL without its query, or the path of the program.
    public var description: String {
        switch self {
        case .url(let url): url.description
        case .program(let path): path
        }
    }
}

/// The URL of an HTTP endpoint.
public struct DestinationURL: Sendable, Hashable, CustomStringConvertible {
    private(set) var origin: Origin
    let target: String

    /// Parses `http://HOST[:PORT]/PATH`, the same with `https`, or `unix:/SOCKET:/PATH`.
    /// - Throws: ``SettingError`` that describes the mistake.
    public init(parsing text: String) throws(SettingError) {
        do throws(SettingError) { (origin, target) = try Origin.parse(text) } catch {
            throw SettingError(
                "'\(text)' is not a URL: give http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix:/SOCKET:/PATH")
        }
    }

    /// See ``Origin/caFile``.
    public var caFile: String? {
        get { origin.caFile }
        set { origin.caFile = newValue }
    }

    /// The URL without its query, which often contains credentials.
    public var description: String {
        let path = String(target.prefix { $0 != "?" })
        return if case .unix = origin.address { "\(origin):\(path)" } else { "\(origin)\(path)" }
    }
}
