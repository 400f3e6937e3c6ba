import Glibc
import HTTPSemantics
import HTTPTestSupport
import SystemCalls
import TestSupport

@testable import ConformanceKit

/// A small reverse proxy, which is correct unless it has a fault. Each connection carries one request.
final class FaultyProxy: Sendable {
    private let server: LoopbackListener
    var url: String { "http://127.0.0.1:\(server.port)/files/" }

    init(upstreamPort: UInt16, _ fault: ProxyFault? = nil) throws {
        server = try LoopbackListener("hostile") { connection, _ in
            try? Relay(connection, upstreamPort, fault).run()
        }
    }
}

/// One connection of the proxy.
private final class Relay: Sendable {
    private let client: FileDescriptor
    private let upstreamPort: UInt16
    private let fault: ProxyFault?
    /// Whether the request has ended.
    private let requestIsOver = Monitor(false)
    private let responseIsOver = Monitor(false)

    init(_ client: FileDescriptor, _ upstreamPort: UInt16, _ fault: ProxyFault?) {
        self.client = client
        self.upstreamPort = upstreamPort
        self.fault = fault
    }

    func run() throws {
        // This thread reads from `input` until the other thread starts. After that, only the other thread reads.
        nonisolated(unsafe) let input = PeerInput(client, timeout: .seconds(20))
        guard let bytes = try input.head() else { return }
        let head = try RequestHead(received: bytes[...])
        guard case .success(let framing) = MessageFraming.evaluate(head) else { return }
        var content = ContentDecoder(framing)
        if let refusal = refusal(head, framing, size: bytes.count) {
            send("HTTP/1.1 \(refusal) No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", to: client)
            return
        }
        if fault == .answersExpectation, head.fields.contains("Expect") {
            send("HTTP/1.1 100 Continue\r\n\r\n", to: client)
        }
        var early: [UInt8] = []
        let isHeld = fault == .buffersBodies || (fault == .buffersChunkedBodies && framing == .chunked)
        if isHeld { while let piece = try input.part(of: &content) { early += piece } }
        let upstream = try LoopbackListener.connect(to: upstreamPort)
        send(forwarded(head), to: upstream)
        let thread = try WorkerThread(name: "proxy") { [early, content] in
            self.forward(early, content, from: input, to: upstream)
        }
        respond(from: upstream)
        responseIsOver.raise()
        shutdown(client.rawValue, Int32(SHUT_WR))
        // The thread still reads the bytes of the client: unread bytes would cause a reset, which would destroy the
        // response.
        thread.join()
    }

    private func refusal(_ head: RequestHead, _ framing: MessageFraming, size: Int) -> Int? {
        if fault == .refusesPatch, head.method == .patch { return 405 }
        if fault == .limitsHeads, size > 3000 { return 431 }
        if fault == .limitsBodies, case .length(let length) = framing, length > 1 << 20 { return 413 }
        return nil
    }

    private func forwarded(_ head: RequestHead) -> String {
        var text = "\(head.method) \(head.target) HTTP/1.\(fault == .usesOldHTTP ? 0 : 1)\r\n"
        for field in head.fields {
            let name = field.name.lowercased()
            switch fault {
            case .losesRange where ["range", "if-range"].contains(name): continue
            case .losesUploadFields where name.hasPrefix("upload-"): continue
            case .losesExpectation where name == "expect", .answersExpectation where name == "expect": continue
            case .hidesHost where name == "host": text += "Host: upstream.example\r\n"
            default: text += "\(field.name): \(field.value)\r\n"
            }
        }
        return text + "Via: 1.1 test\r\nConnection: close\r\n\r\n"
    }

    // MARK: - Requests

    private func forward(
        _ early: [UInt8], _ remaining: ContentDecoder, from input: PeerInput, to upstream: FileDescriptor
    ) {
        defer {
            requestIsOver.raise()
        }
        var content = remaining
        let isChunked = content.framing == .chunked
        func pass(_ piece: ArraySlice<UInt8>) {
            if !piece.isEmpty { send(isChunked ? Request.chunk(Array(piece)) : Array(piece), to: upstream) }
        }
        pass(early[...])
        var held: [UInt8] = []
        do {
            while let piece = try input.part(of: &content) {
                held += piece
                let keep = fault == .holdsBack ? 50_000 : 0
                if held.count > keep {
                    pass(held.dropLast(keep))
                    held = Array(held.suffix(keep))
                }
            }
            pass(held[...])
            if isChunked { send(Request.lastChunk, to: upstream) }
            // The connection to the upstream stays open for the response. Only an interruption of the request is passed
            // on (below).
        } catch {
            if fault == .endsChunksCleanly, isChunked { send(Request.lastChunk, to: upstream) }
            if fault == .hidesAbort {
                // This wait is longer than the timeout of the upstream.
                _ = responseIsOver.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 ? () : nil }
            } else {
                shutdown(upstream.rawValue, Int32(SHUT_WR))
            }
        }
    }

    // MARK: - Responses

    private func respond(from upstream: FileDescriptor) {
        var bytes: [UInt8] = []
        var interims = 0
        var delayed: [UInt8] = []
        while true {
            while let end = ParsedHead.end(of: bytes, from: 0) {
                guard let head = try? ParsedHead(bytes[..<end]) else { return }
                let raw = Array(bytes[..<end])
                bytes.removeFirst(end)
                guard (100..<200).contains(head.status) else {
                    if fault == .delaysAnswers || fault == .losesAnswers {
                        _ = requestIsOver.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 ? () : nil }
                    }
                    send(delayed + closing(head, raw), to: client)
                    return copy(bytes, from: upstream)
                }
                if head.status == 104 { interims += 1 }
                switch (fault, head.status) {
                case (.losesContinue, 100), (.dropsInterim, 104): break
                case (.passesFirstInterim, 104) where interims > 1: break
                case (.delaysInterim, 104): delayed += raw
                case (.limitsInterim, 104) where interims > 5: return
                case (.failsOnInterim, 104):
                    return send("HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", to: client)
                case (.treatsInterimAsFinal, 104):
                    send(Array(raw.dropLast(2)) + Array("Connection: close\r\n\r\n".utf8), to: client)
                    return copy(bytes, from: upstream)
                case (.changesAnnouncedLocation, 104):
                    send(String(decoding: raw, as: UTF8.self).replacing("/uploads/", with: "/other/"), to: client)
                default: send(raw, to: client)
                }
            }
            guard let more = receive(upstream) else { return }
            bytes += more
        }
    }

    private func closing(_ head: ParsedHead, _ raw: [UInt8]) -> [UInt8] {
        let text = String(decoding: raw, as: UTF8.self)
        switch fault {
        case .losesAnswers where head.status == 409:
            return Array("HTTP/1.1 502 No\r\nContent-Length: 5\r\nConnection: close\r\n\r\n".utf8)
        case .losesResponseFields: return Array(text.replacing("Upload-Limit:", with: "X-Limit:").utf8)
        case .losesLocation: return Array(text.replacing("Location:", with: "X-Location:").utf8)
        case .changesPartialContent: return Array(text.replacing("HTTP/1.1 206", with: "HTTP/1.1 200").utf8)
        default: return raw
        }
    }

    private func copy(_ first: [UInt8], from upstream: FileDescriptor) {
        send(first, to: client)
        while let bytes = receive(upstream) { send(bytes, to: client) }
    }

    // MARK: - Bytes

    private func receive(_ connection: FileDescriptor) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(connection.rawValue, &buffer, buffer.count, 0)
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    private func send(_ text: String, to connection: FileDescriptor) { send(Array(text.utf8), to: connection) }

    private func send(_ bytes: [UInt8], to connection: FileDescriptor) {
        var remaining = bytes[...]
        while !remaining.isEmpty {
            let count = remaining.withUnsafeBytes {
                Glibc.send(connection.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            remaining = remaining.dropFirst(count)
        }
    }
}
