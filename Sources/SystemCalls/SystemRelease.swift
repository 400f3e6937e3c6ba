import Glibc

/// The version of the kernel (uname(2)).
package struct SystemRelease: Sendable, Hashable, Comparable {
    package var major: Int
    package var minor: Int

    package init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// Parses a text such as "6.1.0-28-amd64". Numbers that are missing are 0.
    init(parsing text: String) {
        let parts = text.split(separator: ".", maxSplits: 2).map { Int($0.prefix { $0.isNumber }) ?? 0 }
        self.init(major: parts.first ?? 0, minor: parts.dropFirst().first ?? 0)
    }

    package static let current: SystemRelease = {
        var names = utsname()
        guard uname(&names) == 0 else { return SystemRelease(major: 0, minor: 0) }
        let text = withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return SystemRelease(parsing: text)
    }()

    package static func < (left: SystemRelease, right: SystemRelease) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }
}
