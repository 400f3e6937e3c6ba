extension [UInt8] {
    /// Two lower-case digits for each byte.
    var hexadecimal: String {
        let digits = [UInt8]("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0x0F)]] }, as: UTF8.self)
    }
}
