import HTTPSemantics
import TestSupport

@testable import HTTPTransport

extension FuzzTarget {
    /// Checks the parser of the responses of applications and object storages: the result does not depend on how the
    /// input is divided. The first byte of an input selects the method and the division.
    static let originResponses = FuzzTarget(
        name: "origin-responses",
        dictionary: [
            "HTTP/1.1 200 OK\r\n", "HTTP/1.1 103 Early\r\n", "HTTP/1.0 200 OK\r\n", "Content-Length: ",
            "Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "\r\n\r\n", "0\r\n\r\n", ";x=\"\\\"\"", "\r",
            "\n",
        ],
        seeds: { generator in
            (0..<100).map { _ in
                let content = String(repeating: "x", count: Int.random(in: 0...20, using: &generator))
                let chunks = content.isEmpty ? "" : String(content.count, radix: 16) + "\r\n\(content)\r\n"
                let framing = generator.pick([
                    "Content-Length: \(content.count)\r\n\r\n\(content)",
                    "Content-Length: \(generator.number())\r\n\r\n",
                    "Transfer-Encoding: chunked\r\n\r\n\(chunks)0\r\n\r\n",
                    "Transfer-Encoding: chunked\r\n\r\n\(chunks)0;a=b\r\nTrailer: c\r\n\r\n", "\r\n\(content)",
                    "Content-Length: 3, 3\r\n\r\nabc", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
                    "Connection: x, Close\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
                ])
                let start = generator.pick(["", "HTTP/1.1 103 E\r\nA: b\r\n\r\n", "HTTP/1.1 100 C\r\n\r\n"])
                let status = generator.pick(["HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 204 N", "HTTP/1.1 304 N"])
                return [UInt8.random(in: 0...255, using: &generator)] + "\(start)\(status)\r\n\(framing)".utf8
            }
        },
        check: { input throws(Violation) in
            guard let selection = input.first else { return }
            let bytes = Array(input.dropFirst())
            let method: HTTPSemantics.Method = selection & 1 == 0 ? .get : .head
            for endsConnection in [false, true] {
                let atOnce = OriginResponse(bytes, to: method, inPiecesOf: bytes.count, endsConnection)
                let divided = OriginResponse(bytes, to: method, inPiecesOf: 1 + Int(selection >> 4), endsConnection)
                try require(atOnce == divided, "divided input is another response: \(atOnce), \(divided)")
                try require(atOnce.content.count <= bytes.count, "the content is longer than the input")
                try require(
                    !atOnce.isConnectionKept || (atOnce.isComplete && !endsConnection), "the connection is used again")
                guard method == .head, atOnce.isComplete else { continue }
                try require(atOnce.content.isEmpty, "a response to HEAD has content")
            }
        })
}

/// The result of parsing an input.
private struct OriginResponse: Equatable {
    let interims: [String]
    let head: String
    let content: [UInt8]
    let isComplete: Bool
    let isConnectionKept: Bool
    let hasFailed: Bool

    init(_ input: [UInt8], to method: HTTPSemantics.Method, inPiecesOf size: Int, _ endsConnection: Bool) {
        var response = ArrivingResponse(
            to: TransportRequest(
                uri: "http://host/", method: method, fields: [:], stallTimeout: nil,
                settings: TransportSettings(proxy: "", httpVersion: .http1, connectTimeout: .seconds(1)),
                receive: { _ in .abort }))
        var remaining = input[...]
        while !remaining.isEmpty {
            var piece = Array(remaining.prefix(size))
            remaining = remaining.dropFirst(size)
            piece.withUnsafeMutableBytes { response.receive($0) }
        }
        if endsConnection { response.endInput() }
        interims = response.interims.map { "\($0.status) \($0.fields)" }
        head = response.head.map { "\($0.version) \($0.status) \($0.fields)" } ?? ""
        isComplete = response.isComplete
        isConnectionKept = response.isConnectionKept
        hasFailed = response.failure != nil
        content = response.readAll()
    }
}
