/// The words of a text such as `DESTINATION,NAME=VALUE,NAME=VALUE`. They are separated by commas or white space.
struct SettingWords {
    struct Setting {
        let word: String
        let name: String
        /// The text after the first equals sign; empty if there is none.
        let value: String
        /// Whether an earlier setting has the same name.
        let isRepeated: Bool
    }

    /// The first word, which has no name; `nil` if there is none.
    let first: String?
    private(set) var settings: [Setting] = []

    init(parsing text: String) {
        let words = text.split { $0 == " " || $0 == "\t" || $0 == "," }.map(String.init)
        first = words.first
        var names: Set<String> = []
        for word in words.dropFirst() {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            settings.append(
                Setting(
                    word: word, name: parts[0], value: parts.count > 1 ? parts[1] : "",
                    isRepeated: !names.insert(parts[0]).inserted))
        }
    }
}
