import ConformanceKit
import Glibc
import SystemCalls
import TestSupport

/// A server whose standard error, and optionally standard output, is a pipe that is not read until the test reads it.
final class UnreadOutput {
    let directory: TemporaryDirectory
    let port: UInt16
    let process: ChildProcess
    private let reader: FileDescriptor
    private let writer: FileDescriptor
    private var unfinished: [UInt8] = []

    /// - Parameters:
    ///   - isFull: whether the pipe is full at the start.
    ///   - output: whether the pipe is the server's standard output, too.
    init(isFull: Bool, output: Bool = false, _ options: [String] = []) throws {
        directory = try TemporaryDirectory()
        port = try FixedPort.next()
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw Errno.current }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        reader = FileDescriptor(owning: ends[0])
        writer = FileDescriptor(owning: ends[1])
        if isFull { Self.fill(writer) }
        let script = "exec \"$0\" \"$@\" 2>&3 " + (output ? "1>&3 " : "") + "3>&-"
        process = try ChildProcess(
            "/bin/sh",
            [
                "-c", script, try ExecutableLocation.onward(), "serve", "--root", directory.path + "/data", "--listen",
                "127.0.0.1:\(port)", "--min-free", "0",
            ] + options, descriptors: [writer.rawValue])
        let isReady: Bool? = pollUntil(within: .seconds(60)) {
            (try? exchange(.get("/readyz")).status) == 200 ? true : nil
        }
        guard isReady == true else { throw WireFailure.timedOut("the server does not answer") }
    }

    func connect() throws -> RawConnection { try RawConnection(port: port, authority: "127.0.0.1:\(port)") }

    func exchange(_ request: Request) throws -> Response { try connect().exchange(request) }

    /// Reads lines until `isEnough` returns true for all lines so far.
    func readLines(until isEnough: ([Substring]) -> Bool) throws {
        var text = ""
        let deadline = Deadline(in: .seconds(60))
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while !isEnough(text.split(separator: "\n")) {
            var entry = pollfd(fd: reader.rawValue, events: Int16(POLLIN), revents: 0)
            guard !deadline.isOver else { throw WireFailure.timedOut("the log: \(text.suffix(2000))") }
            guard poll(&entry, 1, 100) > 0 else { continue }
            let count = read(reader.rawValue, &buffer, buffer.count)
            unfinished += buffer[..<max(0, count)]
            guard let end = unfinished.lastIndex(of: UInt8(ascii: "\n")) else { continue }
            text += String(decoding: unfinished[...end], as: UTF8.self)
            unfinished.removeSubrange(...end)
        }
    }

    static func fill(_ descriptor: FileDescriptor) {
        _ = fcntl(descriptor.rawValue, F_SETFL, O_NONBLOCK)
        var filler = [UInt8](repeating: UInt8(ascii: "#"), count: 4096)
        filler[4095] = UInt8(ascii: "\n")
        while write(descriptor.rawValue, filler, filler.count) > 0 {}
        _ = fcntl(descriptor.rawValue, F_SETFL, 0)
    }
}
