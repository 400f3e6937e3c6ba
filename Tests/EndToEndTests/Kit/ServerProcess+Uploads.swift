import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

extension ServerProcess {
    /// Creates an upload whose first bytes are `content`, and returns its location.
    func begin(
        _ version: Interop? = .v8, _ target: String = "/files/file.bin", _ content: [UInt8] = [], length: Int? = nil,
        _ fields: [(String, String)] = []
    ) throws -> String {
        var request = Request.creation(version, "PUT", target, complete: false, length: length, .bytes(content))
        request.fields += fields
        let response = try exchange(request)
        guard response.status == 201, let location = response.location else {
            throw TestFailure("creation answered by \(response)")
        }
        return location
    }

    /// Runs a command of `onward` with the storage of this server.
    func run(_ command: [String]) throws -> OnwardRun {
        try OnwardRun(command + storage, environment: shared?.environment ?? [:])
    }

    /// A connection that has transferred so many bytes that no new connection of the same client replaces it for many
    /// minutes.
    func connectFast() throws -> RawConnection {
        let connection = try connect()
        let content = [UInt8](repeating: 0x61, count: 2_000_000)
        let status = try connection.exchange(Request("PUT", "/files/fast", [], .bytes(content))).status
        guard status == 201 || status == 204 else { throw TestFailure("status \(status)") }
        return connection
    }

    /// Retrieves the state of an upload.
    func retrieve(_ location: String, _ version: Interop? = .v8) throws -> Response {
        try exchange(.retrieval(version, location))
    }

    /// The content of a published file in the storage; `nil` if there is no such file.
    func published(_ path: String) -> [UInt8]? {
        if let shared { return read { try shared.published(path) } ?? nil }
        return FileManager.default.contents(atPath: root + "/files/" + path).map { Array($0) }
    }

    /// The names of the published files, at any depth.
    func publishedNames() -> [String] {
        if let shared { return read { try shared.publishedNames() } ?? [] }
        return (try? FileManager.default.subpathsOfDirectory(atPath: root + "/files")) ?? []
    }

    /// The names of the contents of unfinished uploads, with their sizes, read without the server.
    var unfinished: [String: Int] {
        if let shared { return read { try shared.unfinished() } ?? [:] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: root + "/uploads")) ?? []
        var sizes: [String: Int] = [:]
        for name in names where !name.hasPrefix(".") {
            let attributes = try? FileManager.default.attributesOfItem(atPath: "\(root)/uploads/\(name)")
            if let size = attributes?[.size] as? Int { sizes[name] = size }
        }
        return sizes
    }

    /// Removes the bytes of all unfinished uploads from `size` on, without the server. The stored offsets are kept.
    func truncateUnfinished(to size: Int) throws {
        if let shared { return try shared.truncateUnfinished(to: size) }
        for name in unfinished.keys {
            guard truncate("\(root)/uploads/\(name)", size) == 0 else { throw TestFailure("\(name) was not truncated") }
        }
    }

    /// Records an issue if the shared storage cannot be read.
    private func read<Result>(_ body: () throws -> Result) -> Result? {
        do { return try body() } catch {
            Issue.record(error)
            return nil
        }
    }

    /// Waits until the log reports an interrupted request with this method: by then the server has stored the received
    /// bytes.
    func awaitInterruption(_ method: String) throws {
        _ = try process.awaitErrorOutput { text -> Bool? in
            let lines = text.split(separator: "\n")
            return lines.contains { $0.contains(" \(method) ") && $0.hasSuffix(" interrupted") } ? true : nil
        }
    }
}
