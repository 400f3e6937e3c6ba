import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

extension ServerProcess {
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

    /// The content of a published file in the storage; `nil` if there is no such file.
    func published(_ path: String) -> [UInt8]? {
        if let shared { read { try shared.published(path) } ?? nil } else { data.published(path) }
    }

    /// The names of the published files, at any depth.
    func publishedNames() -> [String] {
        if let shared { read { try shared.publishedNames() } ?? [] } else { data.publishedNames() }
    }

    /// The names of the contents of unfinished uploads, with their sizes, read without the server.
    var unfinished: [String: Int] {
        if let shared { read { try shared.unfinished() } ?? [:] } else { data.unfinished }
    }

    /// Removes the bytes of all unfinished uploads from `size` on, without the server. The stored offsets are kept.
    func truncateUnfinished(to size: Int) throws {
        if let shared { try shared.truncateUnfinished(to: size) } else { try data.truncateUnfinished(to: size) }
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
