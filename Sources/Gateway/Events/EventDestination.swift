import HTTPSemantics
import HTTPTransport
import SystemCalls
import UploadStorage

/// The receiver of events.
public enum EventDestination: Sendable {
    /// A URL, or a program that is run once for each event, with the event on standard input. An event is delivered if
    /// the response of the URL is 2xx, or the exit status of the program is 0.
    case destination(Destination)
    /// A function of this process. The event is delivered if it returns. It is called again with the same event if it
    /// throws an error or does not return in time.
    case function(@Sendable (UploadEvent) async throws -> Void)

    /// Parses `http://HOST[:PORT]/PATH`, the same with `https`, `unix:/SOCKET:/PATH`, or the absolute path of a program.
    /// - Throws: ``SettingError`` that describes the mistake.
    public init(parsing text: String) throws(SettingError) { self = .destination(try Destination(parsing: text)) }

    /// The URL or the program; `nil` for a function. Setting `nil` has no effect.
    public var destination: Destination? {
        get { if case .destination(let destination) = self { destination } else { nil } }
        set { if let newValue { self = .destination(newValue) } }
    }
}

/// The destination of events, and the limits of their delivery.
public struct EventSettings: Sendable {
    /// The receiver.
    public var destination: EventDestination
    /// The attribute `source` of all events: a URI reference that identifies this server.
    public var source = "onward"
    /// The keys with which requests are signed, at most two: during the replacement of a secret, a receiver has the old or
    /// the new one.
    public var secrets: [EventSecret] = []
    /// The maximum time of one attempt.
    public var timeout: Duration = .seconds(30)
    /// The time after which an event that cannot be delivered is set aside. Then the later events of its upload follow.
    public var retryTime: Duration = .seconds(86_400)
    /// The time after which an event is dropped. After a start, waiting events are kept for at least ``retryTime``, even if
    /// they are older.
    public var keepTime: Duration = .seconds(7 * 86_400)
    /// The maximum number of events that wait or are set aside. The oldest are dropped.
    public var maxCount = 1_000_000

    /// Creates settings with the default values.
    public init(_ destination: EventDestination) { self.destination = destination }

    /// Parses a text such as `http://127.0.0.1:3000/events,timeout=10s,retry=1h`. The settings are separated by commas
    /// or white space.
    /// - Parameters:
    ///   - text: the destination and the settings `timeout`, `retry`, `keep`, `max` and `source`.
    ///   - duration: parses a duration; returns `nil` if it is invalid.
    /// - Throws: ``SettingError`` that describes all mistakes of the text.
    public init(parsing text: String, duration: (String) -> Duration?) throws(SettingError) {
        let words = SettingWords(parsing: text)
        guard let first = words.first else {
            throw SettingError("give a URL such as http://127.0.0.1:3000/events, or the absolute path of a program")
        }
        self.init(try EventDestination(parsing: first))
        var mistakes: [String] = []
        for setting in words.settings {
            let (word, name, value) = (setting.word, setting.name, setting.value)
            if setting.isRepeated { mistakes.append("\(name) is given twice") }
            switch name {
            case "timeout", "retry", "keep":
                guard let time = duration(value), time > .zero else {
                    mistakes.append("'\(word)': give a duration, such as \(name)=1h")
                    continue
                }
                switch name {
                case "timeout": timeout = time
                case "retry": retryTime = time
                default: keepTime = time
                }
            case "max":
                guard let count = Int(value), count > 0 else {
                    mistakes.append("'\(word)': give a number of events, such as max=100000")
                    continue
                }
                maxCount = count
            case "source":
                guard Self.isURIReference(value) else {
                    mistakes.append("'\(word)': give a URI, such as source=https://files.example")
                    continue
                }
                source = value
            default:
                mistakes.append("'\(word)' is not a setting of events: use timeout, retry, keep, max or source")
            }
        }
        if keepTime < retryTime {
            mistakes.append(
                "events would be dropped after keep=\(keepTime.wholeSeconds)s, although the server tries to deliver"
                    + " them for retry=\(retryTime.wholeSeconds)s: give a longer keep= or a shorter retry=")
        }
        guard mistakes.isEmpty else { throw SettingError(mistakes.joined(separator: "; ")) }
    }

    /// Whether the text has only characters of URIs (RFC 3986 section 2).
    private static func isURIReference(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                byte > 0x20 && byte < 0x7F && !"\"<>\\^`{|}".utf8.contains(byte)
            }
    }
}

extension EventSettings {
    /// Reads one or two secrets, each on a line of its own; `#` begins a comment.
    /// - Throws: ``SettingError`` that describes the mistake, without a secret.
    public static func secrets(parsing text: String) throws(SettingError) -> [EventSecret] {
        var secrets: [EventSecret] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let word = line.prefix { $0 != "#" }.filter { !$0.isWhitespace }
            if word.isEmpty { continue }
            do throws(SettingError) { secrets.append(try EventSecret(parsing: String(word))) } catch {
                throw SettingError("line \(index + 1): \(error)")
            }
        }
        guard (1...2).contains(secrets.count) else {
            throw SettingError("there are \(secrets.count) secrets; give one, or two during a replacement")
        }
        return secrets
    }
}
