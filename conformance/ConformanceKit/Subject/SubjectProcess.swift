import Foundation
import SystemCalls

/// A server that is started from a command with `{port}` and `{root}`, on one port and one directory for its whole run.
final class SubjectProcess: SubjectControl {
    let port: UInt16
    private let command: String
    private let directory: String
    private var group: ProcessGroup?

    init(command: String) throws {
        var template = Array((NSTemporaryDirectory() + "/onward-conformance-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw RunFailure("no temporary directory: \(Errno.current)") }
        directory = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        port = try Self.freePort()
        self.command =
            command
            .replacing("{port}", with: "\(port)")
            .replacing("{root}", with: directory + "/root")
        try FileManager.default.createDirectory(atPath: directory + "/root", withIntermediateDirectories: true)
    }

    deinit {
        group?.kill()
        try? FileManager.default.removeItem(atPath: directory)
    }

    func start() throws {
        let group = try ProcessGroup(shell: command, output: directory + "/output")
        self.group = group
        let deadline = Deadline(in: .seconds(30))
        while !deadline.isOver {
            if let ending = group.currentEnding {
                throw RunFailure("“\(command)” ended (\(ending)) before it listened on port \(port)\(output)")
            }
            let attempt = Deadline(in: .seconds(1))
            do throws(Errno) {
                _ = try ConnectedSocket(.tcp(host: "127.0.0.1", port: port), until: attempt.nanoseconds)
                return
            } catch {
                Deadline.pause(.milliseconds(20))
            }
        }
        throw RunFailure("“\(command)” does not listen on port \(port) after 30 s\(output)")
    }

    func kill() throws {
        group?.kill()
        group = nil
    }

    /// The end of what it wrote.
    private var output: String {
        let text = (try? String(contentsOfFile: directory + "/output", encoding: .utf8)) ?? ""
        return text.isEmpty ? "" : "; it wrote:\n\(text.suffix(2000))"
    }

    /// A port that nobody uses at the moment.
    private static func freePort() throws -> UInt16 {
        let socket = try ListeningSocket(.tcp(host: "127.0.0.1", port: 0))
        let descriptor = FileDescriptor(owning: socket.release())
        defer { withExtendedLifetime(descriptor) {} }
        guard case .tcp(_, let port) = socket.address else { throw RunFailure("no free port") }
        return port
    }
}
