import Glibc
import SystemCalls
import Testing

@testable import TransferServer

/// Tests the part of the log that runs on the log's own thread, with real pipes.
@Suite("The log's writer")
struct LogWriterTests {
    private struct Pipe {
        let reader: FileDescriptor
        let writer: FileDescriptor

        init() throws {
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            reader = FileDescriptor(owning: ends[0])
            writer = FileDescriptor(owning: ends[1])
        }

        func readAvailable() -> [UInt8] {
            var result: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 70_000)
            var entry = pollfd(fd: reader.rawValue, events: Int16(POLLIN), revents: 0)
            while poll(&entry, 1, 0) > 0, entry.revents & Int16(POLLIN) != 0 {
                let count = read(reader.rawValue, &buffer, buffer.count)
                guard count > 0 else { break }
                result += buffer[..<count]
            }
            return result
        }

        /// Fills the pipe.
        func fill() {
            _ = fcntl(writer.rawValue, F_SETFL, O_NONBLOCK)
            let filler = [UInt8](repeating: UInt8(ascii: "#"), count: 4096)
            while write(writer.rawValue, filler, filler.count) > 0 {}
            _ = fcntl(writer.rawValue, F_SETFL, 0)
        }
    }

    @Test("Lines longer than an atomic write to a pipe arrive complete and in order")
    func longLines() throws {
        let pipe = try Pipe()
        var writer = LogWriter(output: LogOutput(descriptor: pipe.writer.rawValue)) { false }
        let lines = (0..<9).map { String(repeating: "\($0)", count: $0 % 3 == 1 ? 3 * LogOutput.atomicSize + 5 : 50) }
        for line in lines { writer.append(line) }
        writer.flush()
        #expect(String(decoding: pipe.readAvailable(), as: UTF8.self) == lines.map { $0 + "\n" }.joined())
        #expect(writer.lost == 0)
    }

    @Test("After the timeout the wait for a full pipe ends, and the unwritten lines are counted as lost")
    func fullPipe() throws {
        let pipe = try Pipe()
        pipe.fill()
        var isLate = false
        var writer = LogWriter(output: LogOutput(descriptor: pipe.writer.rawValue)) { isLate }
        isLate = true
        writer.append("a")
        writer.append("b")
        writer.flush()
        #expect(writer.lost == 2 && writer.removeFailedLines() == 2 && writer.removeFailedLines() == 0)
        // After the reader has read, the count is reported and reset.
        _ = pipe.readAvailable()
        writer.reportLost("2 lost")
        #expect(writer.lost == 0)
        #expect(String(decoding: pipe.readAvailable(), as: UTF8.self) == "2 lost\n")
    }

    @Test("A write to a pipe without a reader or to a closed descriptor only loses lines")
    func brokenPipe() throws {
        signal(SIGPIPE, SIG_IGN)
        var pipe: Pipe? = try Pipe()
        let copy = FileDescriptor(owning: dup(try #require(pipe).writer.rawValue))
        pipe = nil
        for descriptor in [copy.rawValue, 1_000_000] {
            var writer = LogWriter(output: LogOutput(descriptor: descriptor)) { false }
            writer.append("a")
            writer.flush()
            #expect(writer.lost == 1)
            writer.reportLost("1 lost")
            #expect(writer.lost == 1)
            #expect(writer.removeFailedLines() == 1)
        }
    }
}
