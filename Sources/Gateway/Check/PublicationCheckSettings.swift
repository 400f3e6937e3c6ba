/// The destination that checks complete files before they are published, and the limits of checks.
public struct PublicationCheckSettings: Sendable, Hashable {
    /// The URL that gets each file, or the program that is run for each file.
    public var destination: Destination
    /// The maximum time of one check. A file also waits at most this time until its check begins.
    public var timeout: Duration = .seconds(60)
    /// The maximum number of checks at the same time. Other files wait.
    public var maxCount = 8

    /// Creates settings with the default values.
    public init(_ destination: Destination) { self.destination = destination }

    /// Parses a text such as `/usr/local/bin/scan,timeout=2m,max=4`. The settings are separated by commas or white space.
    /// - Parameters:
    ///   - text: the destination and the settings `timeout` and `max`.
    ///   - duration: parses a duration; returns `nil` if it is invalid.
    /// - Throws: ``SettingError`` that describes all mistakes of the text.
    public init(parsing text: String, duration: (String) -> Duration?) throws(SettingError) {
        let words = SettingWords(parsing: text)
        guard let first = words.first else {
            throw SettingError("give the absolute path of a program, or a URL such as http://127.0.0.1:3000/check")
        }
        self.init(try Destination(parsing: first))
        var mistakes: [String] = []
        for setting in words.settings {
            let (word, name, value) = (setting.word, setting.name, setting.value)
            if setting.isRepeated { mistakes.append("\(name) is given twice") }
            switch name {
            case "timeout":
                guard let time = duration(value), time > .zero else {
                    mistakes.append("'\(word)': give a duration, such as timeout=60s")
                    continue
                }
                timeout = time
            case "max":
                guard let count = Int(value), (1...10_000).contains(count) else {
                    mistakes.append("'\(word)': give a number of checks from 1 to 10000, such as max=8")
                    continue
                }
                maxCount = count
            default:
                mistakes.append("'\(word)' is not a setting of a check: use timeout or max")
            }
        }
        guard mistakes.isEmpty else { throw SettingError(mistakes.joined(separator: "; ")) }
    }
}
