import HTTPSemantics

/// The requests that a strict recipient, as RFC 9112 defines it, reads from the bytes of a connection. The requests
/// that the server handles are compared with them. This code shares only the syntax of `Host` with the server, and
/// gets all bytes in one call.
struct ReferenceReading: Equatable {
    struct Request: Equatable, CustomStringConvertible {
        var method: String
        var target: String
        var content: [UInt8]

        var description: String { "\(method) \(target) \(String(decoding: content, as: UTF8.self).debugDescription)" }
    }

    enum Ending: Equatable {
        /// The input ends between two requests, or after one that closes the connection.
        case clean
        /// The input ends within a request.
        case cut
        /// The input has a malformed or refused part.
        case fault
    }

    /// The requests that are complete before the first fault.
    private(set) var requests: [Request] = []
    private(set) var ending = Ending.clean

    private struct Fault: Error {}
    private struct Cut: Error {}

    private var remaining: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        remaining = bytes[...]
        do {
            while try readRequest() {}
        } catch is Cut {
            ending = .cut
        } catch {
            ending = .fault
        }
        remaining = []
    }

    // MARK: - Requests

    /// - Returns: whether another request may follow.
    private mutating func readRequest() throws -> Bool {
        while remaining.first == 0x0D {
            guard remaining.count > 1 else { throw Cut() }
            guard try line() == [] else { break }
        }
        if remaining.isEmpty { return false }
        let words = try line().split(separator: 0x20, omittingEmptySubsequences: false).map { Array($0) }
        guard words.count == 3, Self.isToken(words[0]), !words[1].isEmpty else { throw Fault() }
        let version = words[2]
        guard version.count == 8, version.starts(with: Array("HTTP/".utf8)), Self.isDigit(version[5]),
            version[6] == 0x2E,
            Self.isDigit(version[7])
        else { throw Fault() }
        var lines: [[UInt8]] = []
        while true {
            let field = try line()
            if field.isEmpty { break }
            guard let colon = field.firstIndex(of: 0x3A), colon > 0, field[0] != 0x20, field[0] != 0x09 else {
                throw Fault()
            }
            lines.append(field)
        }
        let fields = try lines.map(Self.field)
        guard version[5] == 0x31 else { throw Fault() }
        let isOld = version[7] == 0x30
        try Self.checkTarget(words[1])
        try Self.checkHost(fields, isOld: isOld)
        let content = try content(fields, isOld: isOld)
        requests.append(
            Request(
                method: String(decoding: words[0], as: UTF8.self), target: String(decoding: words[1], as: UTF8.self),
                content: content))
        let options = fields.filter { $0.name == "connection" }
            .flatMap {
                String(decoding: $0.value, as: UTF8.self).lowercased().split(whereSeparator: { ", \t".contains($0) })
            }
        return !options.contains("close") && (!isOld || options.contains("keep-alive"))
    }

    private mutating func content(_ fields: [(name: String, value: [UInt8])], isOld: Bool) throws -> [UInt8] {
        let lengths = fields.filter { $0.name == "content-length" }.map(\.value)
        let codings = fields.filter { $0.name == "transfer-encoding" }.map(\.value)
        if !codings.isEmpty {
            guard lengths.isEmpty, !isOld, codings.count == 1,
                String(decoding: codings[0], as: UTF8.self).lowercased() == "chunked"
            else { throw Fault() }
            return try chunks()
        }
        // The value is one number, possibly repeated with the same digits.
        let numbers = lengths.flatMap { value in
            value.split(separator: 0x2C, omittingEmptySubsequences: false).map { Self.trimmed(Array($0)) }
        }
        guard let first = numbers.first else { return [] }
        guard numbers.allSatisfy({ $0 == first && !$0.isEmpty && $0.allSatisfy(Self.isDigit) }),
            let length = Int64(String(decoding: first, as: UTF8.self))
        else { throw Fault() }
        return try bytes(Int(length))
    }

    private mutating func chunks() throws -> [UInt8] {
        var content: [UInt8] = []
        while true {
            let size = try chunkSize()
            if size == 0 { break }
            content += try bytes(size)
            // If other bytes than CR LF follow the content, the chunk is malformed, even before the end of the line.
            guard remaining.isEmpty || remaining.first == 0x0D, try line() == [] else { throw Fault() }
        }
        while true {
            let trailer = try line()
            if trailer.isEmpty { return content }
            _ = try Self.field(trailer)
        }
    }

    private mutating func chunkSize() throws -> Int {
        let partial = remaining.prefix { $0 != 0x0D && $0 != 0x0A }
        let digits = partial.prefix { Self.hex($0) != nil }
        // The line is malformed even before its end arrives.
        guard !digits.isEmpty || partial.isEmpty && remaining.isEmpty else { throw Fault() }
        var size: Int64 = 0
        for digit in digits {
            let (product, overflows) = size.multipliedReportingOverflow(by: 16)
            guard !overflows else { throw Fault() }
            size = product + Int64(Self.hex(digit) ?? 0)
        }
        let behind = partial.dropFirst(digits.count)
        let blanks = behind.prefix { $0 == 0x20 || $0 == 0x09 }
        let text = behind.dropFirst(blanks.count)
        if let first = text.first, first != 0x3B { throw Fault() }
        guard text.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else { throw Fault() }
        let hasEnd = partial.endIndex < remaining.endIndex
        if hasEnd, text.isEmpty, !blanks.isEmpty { throw Fault() }
        _ = try line()
        return Int(size)
    }

    // MARK: - Lines and bytes

    /// The next line, without its CR and LF.
    private mutating func line() throws -> [UInt8] {
        for index in remaining.indices {
            switch remaining[index] {
            case 0, 0x0A: throw Fault()
            case 0x0D:
                guard index + 1 < remaining.endIndex else { throw Cut() }
                guard remaining[index + 1] == 0x0A else { throw Fault() }
                defer { remaining = remaining[(index + 2)...] }
                return Array(remaining[..<index])
            default: continue
            }
        }
        throw Cut()
    }

    private mutating func bytes(_ count: Int) throws -> [UInt8] {
        guard count <= remaining.count else { throw Cut() }
        defer { remaining = remaining.dropFirst(count) }
        return Array(remaining.prefix(count))
    }

    // MARK: - Syntax

    private static func field(_ line: [UInt8]) throws -> (name: String, value: [UInt8]) {
        guard let colon = line.firstIndex(of: 0x3A), isToken(Array(line[..<colon])) else { throw Fault() }
        let value = line[(colon + 1)...]
        guard value.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else { throw Fault() }
        return (String(decoding: line[..<colon], as: UTF8.self).lowercased(), trimmed(Array(value)))
    }

    private static func checkTarget(_ target: [UInt8]) throws {
        guard target.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x23 }), target[0] == 0x2F || target == [0x2A]
        else { throw Fault() }
    }

    private static func checkHost(_ fields: [(name: String, value: [UInt8])], isOld: Bool) throws {
        let hosts = fields.filter { $0.name == "host" }
        if hosts.isEmpty && isOld { return }
        guard hosts.count == 1, Authority(parsing: String(decoding: hosts[0].value, as: UTF8.self)) != nil else {
            throw Fault()
        }
    }

    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        let blank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        return Array(bytes.drop(while: blank).reversed().drop(while: blank).reversed())
    }

    private static func isToken(_ bytes: [UInt8]) -> Bool {
        !bytes.isEmpty
            && bytes.allSatisfy { byte in
                isDigit(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || Array("!#$%&'*+-.^_`|~".utf8).contains(byte)
            }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private static func hex(_ byte: UInt8) -> Int? {
        Character(Unicode.Scalar(byte)).isASCII ? Character(Unicode.Scalar(byte)).hexDigitValue : nil
    }
}
