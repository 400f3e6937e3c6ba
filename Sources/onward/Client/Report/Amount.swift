/// Numbers as text for people.
enum Amount {
    /// A number of bytes with three significant digits, in powers of 1000.
    static func bytes(_ count: Int64) -> String {
        if count < 1000 { return "\(count) B" }
        let units = ["kB", "MB", "GB", "TB", "PB", "EB"]
        var value = Double(count) / 1000
        var unit = 0
        // A number that would be rounded to 1000 is shown in the next unit.
        while value >= 999.5, unit < units.count - 1 {
            value /= 1000
            unit += 1
        }
        return "\(digits(value)) \(units[unit])"
    }

    private static func digits(_ value: Double) -> String {
        let places = value < 9.995 ? 2 : value < 99.95 ? 1 : 0
        let scale = [1.0, 10, 100][places]
        let scaled = Int((value * scale).rounded())
        guard places > 0 else { return "\(scaled)" }
        let fraction = String(scaled % Int(scale))
        return "\(scaled / Int(scale))." + String(repeating: "0", count: places - fraction.count) + fraction
    }

    static func rate(_ bytesPerSecond: Double) -> String {
        bytes(Int64(max(0, min(bytesPerSecond, 9e18)).rounded())) + "/s"
    }

    /// A number of seconds in its two largest units.
    static func duration(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds < 100 * 86_400 else { return "over 100 d" }
        let rounded = Int(max(0, seconds).rounded(.up))
        func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return switch rounded {
        case ..<60: "\(rounded) s"
        case ..<3600: "\(rounded / 60) min \(twoDigits(rounded % 60)) s"
        case ..<86_400: "\(rounded / 3600) h \(twoDigits(rounded % 3600 / 60)) min"
        default: "\(rounded / 86_400) d \(twoDigits(rounded % 86_400 / 3600)) h"
        }
    }

    /// A duration in seconds; with one decimal place if it is short.
    static func elapsed(_ seconds: Double) -> String {
        guard seconds < 10 else { return duration(seconds) }
        let tenths = Int((max(0, seconds) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }

    /// The percentage of the total, rounded down.
    static func share(_ count: Int64, of total: Int64) -> Int {
        guard total > 0 else { return 100 }
        return Int(Double(max(0, min(count, total))) / Double(total) * 100)
    }
}
