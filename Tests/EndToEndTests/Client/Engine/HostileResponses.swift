import Foundation
import HTTPSemantics
import SystemCalls
import TestSupport

/// Generated responses, as bytes, of a server that follows no rule.
///
/// Many of the generated values are plausible, so that the sequences reach states in which the other values have an
/// effect.
struct HostileResponses {
    private var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// A response and the interim responses before it.
    struct Exchange: Sendable {
        var bytes: [UInt8]
        /// Whether the connection is reset after the response; otherwise it is closed.
        var isReset: Bool
    }

    /// The factor by which the number of sequences is multiplied: `ONWARD_HEADS`.
    static let factor = ProcessInfo.processInfo.environment["ONWARD_HEADS"].flatMap(Int.init) ?? 1

    static let representation = Payload.bytes(3000)

    // MARK: Exchanges

    /// Responses to the requests of a download. After the first response the download can often be resumed.
    mutating func download() -> [Exchange] {
        var exchanges: [Exchange] = []
        if !generator.oneIn(4) { exchanges.append(cutBeginning()) }
        for _ in 0..<Int.random(in: 1...4, using: &generator) { exchanges.append(exchange(isUpload: false)) }
        return exchanges
    }

    /// Responses to the requests of an upload.
    mutating func upload() -> [Exchange] {
        (0..<Int.random(in: 1...5, using: &generator)).map { _ in exchange(isUpload: true) }
    }

    /// A random head for the state machine of a download, without a connection.
    mutating func head() -> (status: Status, fields: Fields) { (Status(rawValue: status()), fields(isUpload: false)) }

    /// A random head for the state machine of an upload, without a connection.
    mutating func uploadHead() -> (status: Status, fields: Fields) {
        (Status(rawValue: generator.oneIn(3) ? 104 : status()), fields(isUpload: true))
    }

    mutating func chance(_ count: Int) -> Bool { generator.oneIn(count) }

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    private mutating func cutBeginning() -> Exchange {
        let count = number(1...2999)
        let type = pick(["text/html", "application/octet-stream", ""])
        let head = """
            HTTP/1.1 200 OK\r\nETag: "one"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
            Date: Mon, 07 Nov 1994 08:49:37 GMT\r\n\(type.isEmpty ? "" : "Content-Type: \(type)\r\n")\
            \(generator.oneIn(5) ? "" : "Content-Length: 3000\r\n")\r\n
            """
        return Exchange(bytes: Array(head.utf8) + Self.representation.prefix(count), isReset: true)
    }

    private mutating func exchange(isUpload: Bool) -> Exchange {
        var bytes: [UInt8] = []
        if generator.oneIn(3) {
            let count = generator.oneIn(20) ? 200 : number(1...4)
            for _ in 0..<count { bytes += Array(head(pick([100, 102, 103, 104, 104, 199]), isUpload).utf8) }
        }
        if generator.oneIn(25) { return Exchange(bytes: bytes + Array("HTTP/1.1 2".utf8), isReset: generator.oneIn(2)) }
        bytes += Array(head(status(), isUpload).utf8)
        switch number(0...5) {
        case 0: break
        case 1: bytes += Array("5\r\nhello\r\n0\r\n\r\n".utf8)
        case 2: bytes += Self.representation
        default: bytes += Self.representation.suffix(number(0...3000))
        }
        return Exchange(bytes: bytes, isReset: generator.oneIn(3))
    }

    private mutating func head(_ status: Int, _ isUpload: Bool) -> String {
        var text = "HTTP/1.1 \(status) x\r\n"
        for field in fields(isUpload: isUpload) { text += "\(field.name): \(field.value)\r\n" }
        return text + "\r\n"
    }

    // MARK: Parts of a head

    private mutating func pick<Value>(_ values: [Value]) -> Value { values[number(0...values.count - 1)] }

    private mutating func status() -> Int {
        if generator.oneIn(3) { return pick([200, 206]) }
        return pick([
            200, 201, 202, 203, 204, 205, 206, 206, 207, 226, 299, 300, 301, 302, 303, 304, 305, 307, 308, 400, 401,
            403,
            404, 407, 408, 409, 410, 412, 413, 415, 416, 416, 423, 425, 429, 500, 501, 502, 503, 505, 599, 600, 999,
        ])
    }

    /// A number in a field: small, at the limits of Int64, beyond them, or missing.
    private mutating func count() -> String {
        switch number(0...9) {
        case 0...3: "\(number(0...3000))"
        case 4: pick(["0", "3000", "2999", "3001"])
        case 5: pick(["9223372036854775807", "9223372036854775806", "4611686018427387904", "999999999999999"])
        case 6: pick(["9223372036854775808", "18446744073709551616", "99999999999999999999999999"])
        case 7: pick(["-1", "-0", "+5", "5.0", "0x10", "1e3", "5, 5", "5, 6", "", " ", "٣", "\u{0}"])
        default: "\(number(0...100_000))"
        }
    }

    private mutating func contentRange() -> String {
        switch number(0...5) {
        case 0: "bytes */\(count())"
        case 1: "bytes \(count())-\(count())/*"
        case 2: pick(["", "bytes", "bytes 5-4/3", "items 0-1/2", "bytes */*", "bytes -5/9", "bytes 0-0/0"])
        case 3:
            "bytes \(number(0...2999))-2999/3000"
        default: "bytes \(count())-\(count())/\(count())"
        }
    }

    private mutating func fields(isUpload: Bool) -> Fields {
        var fields = Fields()
        func add(_ name: String, _ value: String) { fields.append(name, value) }
        if !generator.oneIn(3) { add("Content-Length", count()) }
        if generator.oneIn(15) { add("Content-Length", count()) }
        if generator.oneIn(12) { add("Transfer-Encoding", pick(["chunked", "gzip", "gzip, chunked", "x"])) }
        if generator.oneIn(2) { add("ETag", pick(["\"one\"", "\"one\"", "\"two\"", "W/\"one\"", "one", "\"", "*"])) }
        if generator.oneIn(3) {
            add("Last-Modified", pick(["Sun, 06 Nov 1994 08:49:37 GMT", "x", "Sun, 06 Nov 9999 08:49:37 GMT"]))
            add("Date", pick(["Mon, 07 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "", "-"]))
        }
        if generator.oneIn(2) {
            add("Content-Type", pick(["text/html", "application/octet-stream", "multipart/byteranges", "?"]))
        }
        if generator.oneIn(2) { add("Content-Range", contentRange()) }
        if generator.oneIn(8) { add("Content-Encoding", pick(["gzip", "identity", "", "gzip, br"])) }
        if generator.oneIn(8) {
            add("Repr-Digest", pick(["sha-256=:AAAA:", "sha-256=x", "=", "md5=:AA==:, sha-512=:AA==:"]))
        }
        if generator.oneIn(4) {
            add(
                "Location",
                pick(["/a", "/u/1", "/u/1", "http://127.0.0.1:1/x", "//", "ftp://h/", "?", "%zz", "http://[::1"]))
        }
        if generator.oneIn(6) { add("Retry-After", pick(["0", "-1", "0.5", "x", "Sun, 06 Nov 1994 08:49:37 GMT"])) }
        if generator.oneIn(8) {
            add("Content-Disposition", pick(["attachment; filename=\"../x\"", "filename*=UTF-8''%ff", ";"]))
        }
        guard isUpload else { return fields }
        if generator.oneIn(2) { add("Upload-Offset", count()) }
        if generator.oneIn(2) { add("Upload-Complete", pick(["?0", "?0", "?1", "1", "?2"])) }
        if generator.oneIn(3) { add("Upload-Draft-Interop-Version", pick(["8", "8", "8", "3", "x"])) }
        if generator.oneIn(3) {
            add(
                "Upload-Limit",
                pick([
                    "max-size=\(count())", "min-size=0", "max-append-size=\(count())", "min-append-size=\(count())",
                    "max-age=\(count())", "max-append-size=0", "max-age=0", "x=(", "",
                ]))
        }
        if generator.oneIn(4) { add("Upload-Length", count()) }
        return fields
    }
}
