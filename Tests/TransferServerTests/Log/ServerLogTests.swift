import Glibc
import HTTPSemantics
import SystemCalls
import Testing

@testable import TransferServer

@Suite("The log of a server")
struct ServerLogTests {
    @Test("A function receives all lines in order, without line feed; without an output nothing is queued")
    func lines() throws {
        let received = Monitor<[String]>([])
        let log = ServerLog(
            format: .text, level: .info, sink: .lines { line in received.withLock { $0.append(line) } })
        try log.start()
        for number in 0..<100 { log.info("line \(number)") }
        log.stop(within: 10_000_000_000)
        let lines = received.withLock { $0 }
        #expect(
            lines.map { $0.split(separator: " ").suffix(2).joined(separator: " ") } == (0..<100).map { "line \($0)" })
        let silent = ServerLog(format: .text, level: .info, sink: .none)
        for _ in 0..<5000 { silent.info("line") }
        #expect(silent.droppedLines == 0)
        silent.stop(within: 0)
    }

    @Test("Logging never waits for the reader; each line arrives complete and in order, or is counted as dropped")
    func unreadPipe() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let reader = FileDescriptor(owning: ends[0])
        let log = ServerLog(format: .text, level: .info, sink: LogSink(kind: .output(LogOutput(descriptor: ends[1]))))
        try log.start()
        let threads = try (0..<4).map { number in
            try WorkerThread(name: "logging") {
                for line in 0..<3000 { log.info("thread \(number) line \(line) end") }
            }
        }
        // The reader begins after all threads have logged.
        for thread in threads { thread.join() }
        #expect(log.droppedLines > 0)
        let collected = Monitor<[UInt8]?>(nil)
        _ = try WorkerThread(name: "reading") {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = read(reader.rawValue, &buffer, buffer.count)
                if count <= 0 { break }
                bytes += buffer[..<count]
            }
            collected.withLock { $0 = bytes }
            collected.notifyAll()
        }
        log.stop(within: 60_000_000_000)
        let dropped = log.droppedLines
        close(ends[1])
        let bytes = try #require(collected.wait(until: SystemClock.monotonicNanoseconds() + 60_000_000_000) { $0 })
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        var last = [-1, -1, -1, -1]
        var written = 0
        var reported = 0
        for line in lines {
            let words = line.split(separator: " ")
            if line.contains("log lines were dropped") {
                reported += try #require(Int(words[2]))
                continue
            }
            try #require(words.count == 7 && words[2] == "thread" && words[6] == "end", "\(line)")
            let thread = try #require(Int(words[3]))
            let number = try #require(Int(words[5]))
            #expect(number > last[thread])
            last[thread] = number
            written += 1
        }
        #expect(written + dropped == 12_000)
        #expect(reported == dropped)
    }
}
