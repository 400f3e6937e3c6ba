// The character classes of RFC 9651, and those of the RFC 9110 rules that RFC 9651 uses.
extension UInt8 {
    static let tab = UInt8(ascii: "\t")
    static let space = UInt8(ascii: " ")
    static let quote = UInt8(ascii: "\"")
    static let percent = UInt8(ascii: "%")
    static let openParenthesis = UInt8(ascii: "(")
    static let closeParenthesis = UInt8(ascii: ")")
    static let asterisk = UInt8(ascii: "*")
    static let comma = UInt8(ascii: ",")
    static let minus = UInt8(ascii: "-")
    static let point = UInt8(ascii: ".")
    static let colon = UInt8(ascii: ":")
    static let semicolon = UInt8(ascii: ";")
    static let equals = UInt8(ascii: "=")
    static let questionMark = UInt8(ascii: "?")
    static let at = UInt8(ascii: "@")
    static let backslash = UInt8(ascii: "\\")

    var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
    var isLowercase: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self }
    var isLetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= (self | 0x20) }
    var isPrintable: Bool { 0x20...0x7E ~= self }

    var startsKey: Bool { isLowercase || self == .asterisk }

    var continuesKey: Bool {
        switch self {
        case UInt8(ascii: "_"), .minus, .point, .asterisk: true
        default: isLowercase || isDigit
        }
    }

    var startsToken: Bool { isLetter || self == .asterisk }

    /// `tchar` of RFC 9110 §5.6.2, or one of the two other characters that a Token can contain.
    var continuesToken: Bool {
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), .asterisk, UInt8(ascii: "+"), .minus, .point, UInt8(ascii: "^"), UInt8(ascii: "_"),
            UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"), .colon, UInt8(ascii: "/"):
            true
        default: isLetter || isDigit
        }
    }

    /// The value of a lower-case hexadecimal digit.
    var lowercaseHexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
