import CommandLineInterface
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TLS
import TransferServer

/// Requests the server on this machine, at the address in the variables that `onward serve` reads.
///
/// It uses its own socket: the proxy of the environment must not be used, the server may listen on a Unix socket, and
/// its certificate is for its public name. The request contains no secret.
struct LocalHealthClient: Sendable {
    private let address: SocketAddress
    private let isSecure: Bool
    private let ownPrefix: String

    init(_ environment: [String: String]) throws(OptionError) {
        var settings = ServeSettings()
        let options = ServeSettings.options.filter {
            ["listen", "tls-cert", "tls-key", "own-prefix"].contains($0.name)
        }
        try OptionParser(options: options).parse([], environment: environment, into: &settings)
        ownPrefix = OwnPaths(settings.server.ownPrefix).percentEncodedPrefix
        address = settings.listeners.first ?? settings.server.listeners[0]
        if case .tcp = address { isSecure = settings.certificateFiles != nil } else { isSecure = false }
    }

    /// The path to request for the operand of the command: the server can have `/healthz` and `/readyz` below a prefix.
    func path(for operand: String) -> String {
        ["/healthz", "/readyz"].contains(operand) ? ownPrefix + operand : operand
    }

    /// The requested URL or path, for messages.
    func shown(_ path: String) -> String {
        switch address {
        case .tcp: "\(isSecure ? "https" : "http")://\(address)\(path)"
        case .unix: "\(path) on \(address)"
        }
    }

    /// Requests `path`. The deadline is in monotonic nanoseconds.
    func get(_ path: String, until deadline: Int64) throws(CommandFailure) -> TransferResponse {
        let text = "GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        let answer: [UInt8]
        do {
            let socket = try ConnectedSocket(address, until: deadline)
            if isSecure {
                let secured = try TLSClientConnection(
                    over: socket, to: "localhost", trusting: .anyCertificate, until: deadline)
                answer = try Self.exchange(
                    text, { bytes throws(Errno) in try secured.send(bytes, until: deadline) },
                    { buffer throws(Errno) in try secured.receive(into: buffer, until: deadline) })
            } else {
                answer = try Self.exchange(
                    text, { bytes throws(Errno) in try socket.send(bytes, until: deadline) },
                    { buffer throws(Errno) in try socket.receive(into: buffer, until: deadline) })
            }
        } catch {
            throw CommandFailure(.tryAgain, "no-answer", "\(shown(path)) cannot be reached: \(error)")
        }
        guard let response = Self.response(answer) else {
            throw CommandFailure(.tryAgain, "no-answer", "\(shown(path)) did not send an HTTP response")
        }
        return response
    }

    /// Sends a request and receives the response to its end, or up to the maximum size of a response of this server.
    private static func exchange(
        _ text: String, _ send: (ArraySlice<UInt8>) throws(Errno) -> Int,
        _ receive: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
    ) throws(Errno) -> [UInt8] {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty { bytes = bytes.dropFirst(try send(bytes)) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 1)
        defer { buffer.deallocate() }
        var answer: [UInt8] = []
        while answer.count < 64 << 10 {
            let count = try receive(buffer)
            if count == 0 { break }
            answer += buffer[..<count]
        }
        return answer
    }

    private static func response(_ answer: [UInt8]) -> TransferResponse? {
        let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) ?? answer.endIndex..<answer.endIndex
        let lines = String(decoding: answer[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let first = lines.first?.split(separator: " ") ?? []
        guard first.count >= 2, first[0].hasPrefix("HTTP/1."), let code = Int(first[1]), (100...599).contains(code)
        else { return nil }
        var fields = Fields()
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            let value = parts.last?.drop { $0 == " " } ?? ""
            guard parts.count == 2, Fields.isValidName(String(parts[0])), Fields.isValidValue(String(value)) else {
                return nil
            }
            fields.append(String(parts[0]), String(value))
        }
        return TransferResponse(
            status: Status(rawValue: code), fields: fields, content: Array(answer[end.upperBound...]))
    }
}
