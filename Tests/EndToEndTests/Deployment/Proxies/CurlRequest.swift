import Foundation
import TestSupport
import Testing

/// A run of curl through a proxy, which records the heads of all responses as they arrive.
final class CurlRequest {
    /// The head of a response, final or interim.
    struct Head {
        let status: Int
        private let lines: [Substring]

        init?(_ block: Substring) {
            lines = block.split(separator: "\r\n")
            guard let first = lines.first, first.hasPrefix("HTTP/"),
                let status = first.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
            else { return nil }
            self.status = status
        }

        subscript(name: String) -> String? {
            lines.first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
                .map { $0.dropFirst(name.utf8.count + 1).trimmingCharacters(in: .whitespaces) }
        }
    }

    let process: ChildProcess
    private let directory: TemporaryDirectory

    /// - Parameters:
    ///   - target: a path, or a URL.
    ///   - input: a file that is the standard input of curl, so that curl does not send its length.
    init(_ proxied: ProxiedServer, _ target: String, _ options: [String], input: String? = nil) throws {
        directory = try TemporaryDirectory()
        let url = target.hasPrefix("/") ? proxied.url + target : target
        let arguments =
            [
                "-q", "-sS", "--noproxy", "*", "--max-time", "40", proxied.version.option, "--cacert",
                proxied.certificate,
                "-D", directory.path + "/head", "-o", directory.path + "/body", "-w", "%{stderr}sent=%{size_upload}\n",
                "-H", "Expect:", "-H", "Upload-Draft-Interop-Version: 8",
            ] + options + [url]
        process = try ChildProcess(
            "/bin/sh", ["-c", "exec /usr/bin/curl \"$@\" < \"$INPUT\"", "curl"] + arguments,
            environment: ["INPUT": input ?? "/dev/null"])
    }

    /// The heads that have arrived.
    var heads: [Head] {
        let text = FileManager.default.contents(atPath: directory.path + "/head").map {
            String(decoding: $0, as: UTF8.self)
        }
        // An incomplete head has no empty line after it.
        return (text ?? "").split(separator: "\r\n\r\n", omittingEmptySubsequences: false).dropLast().compactMap(
            Head.init)
    }

    var interims: [Head] { heads.filter { $0.status == 104 } }
    var final: Head? { heads.last { $0.status >= 200 } }
    var body: [UInt8] { FileManager.default.contents(atPath: directory.path + "/body").map { Array($0) } ?? [] }

    /// The number of bytes of content that curl sent; known when curl has ended.
    var sent: Int? {
        process.errorOutput.split(separator: "\n").first { $0.hasPrefix("sent=") }.flatMap { Int($0.dropFirst(5)) }
    }

    /// The number of bytes that the running curl has read, including its content (proc(5)).
    var bytesRead: Int {
        let text = FileManager.default.contents(atPath: "/proc/\(process.identifier)/io")
        return String(decoding: text ?? Data(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix("rchar: ") }.flatMap { Int($0.dropFirst(7)) } ?? 0
    }

    /// Waits until curl has ended.
    @discardableResult
    func finish() throws -> CurlRequest {
        _ = try process.awaitEnding(within: .seconds(45))
        return self
    }

    /// Waits until curl has ended, and expects a final response.
    func response() throws -> Head {
        try finish()
        guard process.ending == .exited(0), let final else {
            throw TestFailure("curl: \(String(describing: process.ending)) \(process.errorOutput)")
        }
        return final
    }
}

extension ProxiedServer {
    func curl(_ target: String, _ options: String..., input: String? = nil) throws -> CurlRequest {
        try CurlRequest(self, target, options, input: input)
    }

    /// Creates an upload without content, and returns its URL.
    func create(_ target: String, _ options: String...) throws -> String {
        let all = ["-X", "PUT", "-H", "Upload-Complete: ?0"] + options
        let head = try CurlRequest(self, target, all).response()
        guard head.status == 201, let location = head["Location"] else {
            throw TestFailure("creation: \(head)")
        }
        return location
    }

    /// The offset of an upload, and whether it is complete.
    func state(of location: String) throws -> (offset: Int, isComplete: Bool) {
        let head = try curl(location, "-I").response()
        guard let offset = head["Upload-Offset"].flatMap({ Int($0) }), let complete = head["Upload-Complete"] else {
            throw TestFailure("offset retrieval: \(head)")
        }
        return (offset, complete == "?1")
    }

    /// Appends the bytes of a file to an upload.
    func append(_ file: String, to location: String, at offset: Int, _ options: String...) throws -> CurlRequest {
        let head = ["Content-Type: application/partial-upload", "Upload-Offset: \(offset)", "Upload-Complete: ?1"]
        return try CurlRequest(self, location, ["-T", file, "-X", "PATCH"] + head.flatMap { ["-H", $0] } + options)
    }
}
