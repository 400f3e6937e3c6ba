import Foundation
import SystemCalls

/// A server that a command with `{port}` and `{root}` starts. The port and the directory stay the same in a run.
final class SubjectProcess: SubjectControl {
    let port: UInt16
    let diskSize: Int64?
    private let command: String
    private let directory: ScratchDirectory
    private var group: ProcessGroup?

    /// - Parameter diskSize: the size in bytes of a tmpfs(5) that is mounted on `{root}`; `nil` for a plain directory.
    init(command: String, diskSize: Int64? = nil) throws {
        self.diskSize = diskSize
        directory = try ScratchDirectory()
        let root = directory.path + "/root"
        port = try Self.freePort()
        self.command =
            command
            .replacing("{port}", with: "\(port)")
            .replacing("{root}", with: root)
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: false)
        if let diskSize {
            directory.detachesAtRemoval(root)
            try Self.run(
                "mount -t tmpfs -o size=\(diskSize),mode=0700 onward-conformance '\(root)'",
                output: directory.path + "/output")
        }
    }

    deinit {
        group?.kill()
        Self.usedPorts.withLock { _ = $0.remove(port) }
    }

    func start() throws {
        let group = try ProcessGroup(shell: command, output: directory.path + "/output")
        self.group = group
        let deadline = Deadline(in: .seconds(30))
        while !deadline.isOver {
            // A command that has succeeded may have started the server in the background.
            if let ending = group.currentEnding, ending != .exited(0) || !group.isRunning {
                throw RunFailure("'\(command)' \(ending) before it listened on port \(port)\(output)")
            }
            if isListening { return }
            Deadline.pause(.milliseconds(20))
        }
        throw RunFailure("'\(command)' does not listen on port \(port) after 30 s\(output)")
    }

    /// Kills the process group and waits until the server has ended: the command may be a shell that waits for the
    /// server or has started it in the background, and a process that is about to end would reset a new connection.
    func kill() throws {
        guard let group else { return }
        group.kill()
        self.group = nil
        let deadline = Deadline(in: .seconds(10))
        while group.isRunning {
            if deadline.isOver { throw RunFailure("'\(command)' still runs 10 s after SIGKILL") }
            Deadline.pause(.milliseconds(5))
        }
        while isListening {
            if deadline.isOver {
                throw RunFailure(
                    "port \(port) still accepts connections after '\(command)' was killed: the server has left the process"
                        + " group of its command; start it in the foreground")
            }
            Deadline.pause(.milliseconds(5))
        }
    }

    /// Whether a process accepts connections on the port.
    private var isListening: Bool {
        let limit = Deadline(in: .seconds(1)).nanoseconds
        return (try? ConnectedSocket(.tcp(host: "127.0.0.1", port: port), until: limit)) != nil
    }

    /// The end of the output of the command.
    private var output: String {
        let text = (try? String(contentsOfFile: directory.path + "/output", encoding: .utf8)) ?? ""
        return text.isEmpty ? "" : "; it wrote:\n\(text.suffix(2000))"
    }

    private static func run(_ command: String, output: String) throws {
        let process = try ProcessGroup(shell: command, output: output)
        let deadline = Deadline(in: .seconds(30))
        while process.currentEnding == nil, !deadline.isOver { Deadline.pause(.milliseconds(5)) }
        guard process.currentEnding == .exited(0) else {
            let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
            throw RunFailure("'\(command)' failed: \(text.suffix(500))")
        }
    }

    private static let usedPorts = Monitor<Set<UInt16>>([])

    /// Returns a free port outside the range from which the system assigns ports: it has to stay free until the
    /// server listens, and while the server is restarted. No other subject of this process gets the same port.
    private static func freePort() throws -> UInt16 {
        for _ in 0..<100 {
            let port = UInt16.random(in: 20_000...31_999)
            guard usedPorts.withLock({ $0.insert(port).inserted }) else { continue }
            if ListeningSocket.isFree(port: port) { return port }
        }
        throw RunFailure("no free port")
    }
}
