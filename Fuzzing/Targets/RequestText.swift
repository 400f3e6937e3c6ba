import HTTPSemantics
import TestSupport

/// Requests as text, one line after the other.
enum RequestText {
    static let dictionary = [
        "GET ", "PUT ", "POST ", "PATCH ", "DELETE ", "HEAD ", "OPTIONS ", " HTTP/1.1\r\n", " HTTP/1.0\r\n",
        "Host: localhost\r\n", "Content-Length: ", "Transfer-Encoding: chunked\r\n", "Upload-Complete: ?1\r\n",
        "Upload-Complete: ?0\r\n", "Upload-Incomplete: ?1\r\n", "Upload-Offset: ", "Upload-Length: ",
        "Upload-Draft-Interop-Version: ", "Upload-Limit: max-size=", "Content-Type: application/partial-upload\r\n",
        "If-Match: *\r\n", "If-None-Match: *\r\n", "Range: bytes=", "If-Range: ", "Expect: 100-continue\r\n",
        "Connection: close\r\n", "Authorization: Bearer ", "Content-Disposition: attachment; filename=", "/files/",
        "/uploads/@U", "/../", "%2e%2e%2f", "0\r\n\r\n", "5\r\nhello\r\n", "\r\n\r\n", "Origin: http://localhost\r\n",
        "Want-Repr-Digest: sha-256=1\r\n", "Repr-Digest: sha-256=:", "Content-Encoding: gzip\r\n",
    ]

    /// Parses the head of a request as leniently as any server might. It does not reject invalid heads.
    static func head(_ text: String) -> RequestHead? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.last == "\r" ? $0.dropLast() : $0 }
        let words = (lines.first ?? "").split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count == 3 else { return nil }
        var fields = Fields()
        for line in lines.dropFirst().prefix(while: { !$0.isEmpty }) {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            fields.append(String(parts[0]), parts.count == 2 ? String(parts[1]) : "")
        }
        return RequestHead(
            method: Method(rawValue: String(words[0])), target: String(words[1]),
            version: ProtocolVersion(parsing: String(words[2])) ?? .http11, fields: fields)
    }

    private static let targets = [
        "/files/a.txt", "/files/", "/files/b/c.bin", "/uploads/@U", "/uploads/@U", "/healthz", "/readyz", "*",
        "/files/..%2f..%2foutside", "/files/link/x", "/files/%00", "http://localhost/files/a.txt", "/uploads/",
        "/files/link", "/files/leaf", "/files/half.bin", "/nowhere?x=y",
    ]

    /// Returns a GET request and a PUT request for each target. Only the target can be a reason to refuse them.
    static func plainRequests(token: String?) -> [String] {
        let fields = "Host: localhost\r\n" + (token.map { "Authorization: Bearer \($0)\r\n" } ?? "")
        return targets.flatMap { target in
            [
                "GET \(target) HTTP/1.1\r\n\(fields)\r\n",
                "PUT \(target) HTTP/1.1\r\n\(fields)Content-Length: 1\r\n\r\nx",
            ]
        }
    }

    /// Returns a request that is probably valid.
    static func request(_ generator: inout SeededGenerator, token: String? = nil) -> String {
        let target = generator.pick(targets)
        let method = generator.pick(
            target.hasPrefix("/uploads")
                ? ["HEAD", "PATCH", "PATCH", "PATCH", "DELETE", "GET", "OPTIONS", "PUT"]
                : ["GET", "PUT", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "get", "CONNECT"])
        let content = generator.pick(["", "hello", "x", "0123456789abcdef", String(repeating: "z", count: 300)])
        var lines = ["Host: \(generator.pick(["localhost", "localhost", "localhost:80", "evil.example", "127.0.0.1"]))"]
        if let token { lines.append("Authorization: Bearer \(token)") }
        let all = optional(&generator, content: content)
        for _ in 0..<Int.random(in: 0...6, using: &generator) { lines.append(generator.pick(all)) }
        if Int.random(in: 0...2, using: &generator) == 0 { lines += uploadFields(&generator, content: content) }
        var body = content
        switch Int.random(in: 0...9, using: &generator) {
        case 0...1: break
        case 2...5: lines.append("Content-Length: \(content.utf8.count)")
        case 6: lines.append("Content-Length: \(generator.number())")
        default:
            lines.append("Transfer-Encoding: chunked")
            let size = String(content.utf8.count, radix: 16)
            body = content.isEmpty ? "0\r\n\r\n" : "\(size)\(generator.pick(["", ";x=y"]))\r\n\(content)\r\n0\r\n\r\n"
        }
        let version = generator.pick(["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0"])
        return "\(method) \(target) \(version)\r\n" + lines.joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    /// Returns fields of an upload that are consistent with each other, but may not be consistent with the content.
    private static func uploadFields(_ generator: inout SeededGenerator, content: String) -> [String] {
        let length = content.utf8.count + generator.pick([-1, 0, 0, 1, 4])
        let fields = [
            "Upload-Draft-Interop-Version: \(Int.random(in: 3...8, using: &generator))",
            "Upload-Complete: \(generator.pick(["?0", "?1"]))",
        ]
        return generator.pick([true, false]) ? fields + ["Upload-Length: \(length)"] : fields
    }

    private static func optional(_ generator: inout SeededGenerator, content: String) -> [String] {
        let number = generator.number()
        return [
            "Upload-Complete: ?1", "Upload-Complete: ?0", "Upload-Incomplete: ?1", "Upload-Incomplete: ?0",
            "Upload-Complete: 1", "Upload-Offset: \(number)", "Upload-Offset: 4", "Upload-Offset: 0",
            "Upload-Length: \(number)", "Upload-Length: \(content.utf8.count)", "Upload-Length: 4",
            "Upload-Draft-Interop-Version: \(Int.random(in: 2...9, using: &generator))",
            "Upload-Draft-Interop-Version: 8", "Content-Type: application/partial-upload", "Content-Type: text/html",
            "Content-Disposition: attachment; filename=\"n.txt\"", "If-Match: *", "If-None-Match: *",
            "If-None-Match: \"x\"", "Range: bytes=0-1,-2", "Range: bytes=\(number)-", "If-Range: \"x\"",
            "Expect: 100-continue", "Connection: close", "Want-Repr-Digest: sha-256=5", "Accept: application/json",
            "Repr-Digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:", "Origin: http://evil.example",
            "Upload-Limit: max-size=\(number), max-age=5", "Content-Encoding: gzip", "Onward-Interim: off",
            "X-Forwarded-For: 1.2.3.4", "Transfer-Encoding: gzip, chunked", "Access-Control-Request-Method: PUT",
        ]
    }
}
