import CLinux
import Glibc

/// One run of a program as a separate process group: its input, its output up to a limit, and a time limit.
///
/// The program inherits no descriptor and no variable of this process except those that are named here. When the
/// program has ended, the processes that it started are ended, too, unless they have left the process group.
package struct ProgramRun: Sendable {
    /// The standard input of the program.
    package enum Input: Sendable {
        /// The bytes, which the program can also map and seek.
        case bytes([UInt8])
        /// The file from the offset of the descriptor on. The program can seek if the file can.
        case file(FileDescriptor)
        /// The bytes from a closure, which is called on another thread. It copies bytes from an offset on into a
        /// buffer, and returns their number: 0 at the end, `nil` if it has failed. The program cannot seek.
        case stream(@Sendable (UnsafeMutableRawBufferPointer, Int64) -> Int?)
    }

    /// How the run ended.
    package enum Outcome: Sendable, Hashable, CustomStringConvertible {
        case ended(ProcessGroup.Ending)
        /// The program ran longer than the time limit, and was ended.
        case timedOut
        /// The caller canceled the run, and the program was ended.
        case canceled
        /// Not all of the input could be read, so what the program has concluded from it has no meaning.
        case inputFailed
        /// The program could not be started.
        case notStarted(Errno)

        package var description: String {
            switch self {
            case .ended(let ending): "\(ending)"
            case .timedOut: "was ended because it exceeded the time limit"
            case .canceled: "was canceled"
            case .inputFailed: "could not get all of its input"
            case .notStarted(let error): "could not be started: \(error)"
            }
        }
    }

    /// The result of a run.
    package struct Result: Sendable {
        package var outcome: Outcome
        /// The first bytes of the standard output, at most ``maxOutput``.
        package var output: [UInt8] = []
        /// The first bytes of the standard error, at most ``maxErrors``.
        package var errors: [UInt8] = []
        /// Whether the program wrote more than ``maxOutput`` bytes to its standard output.
        package var isOutputCut = false

        /// How the run ended, with the beginning of the standard error, on one line.
        package var summary: String {
            let text = String(decoding: errors.prefix(Self.maxSummarizedErrors), as: UTF8.self)
            let line = text.split(whereSeparator: \.isNewline).joined(separator: " ")
            return "\(outcome)" + (line.isEmpty ? "" : ": \(line)")
        }

        private static let maxSummarizedErrors = 256
    }

    /// The absolute path of the program.
    package var program: String
    package var arguments: [String]
    /// Variables in addition to those of ``inheritedVariables``.
    package var variables: [(name: String, value: String)]
    package var input: Input
    /// The maximum time until the program gets SIGTERM. It gets SIGKILL ``stopTime`` later.
    package var timeout: Duration
    package var maxOutput = 64 << 10
    package var maxErrors = 4 << 10

    /// The variables of this process that a program gets, if they are set.
    package static let inheritedVariables = ["PATH", "HOME", "LANG", "TZ"]
    private static let defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    /// The time between SIGTERM and SIGKILL.
    private static let stopTime: Duration = .seconds(1)
    /// The maximum time in ms between two checks of the end, the time limit and the cancellation.
    private static let checkInterval: Int32 = 20

    package init(
        _ program: String, arguments: [String] = [], variables: [(name: String, value: String)] = [],
        input: Input = .bytes([]), timeout: Duration
    ) {
        self.program = program
        self.arguments = arguments
        self.variables = variables
        self.input = input
        self.timeout = timeout
    }

    /// The reason why this process cannot execute a program, according to the attributes of the file; `nil` if there is
    /// none.
    package static func obstacle(to program: String) -> Errno? {
        var status = stat()
        guard stat(program, &status) == 0 else { return .current }
        guard FileStatus(status).isRegular else { return .accessDenied }
        return faccessat(AT_FDCWD, program, X_OK, AT_EACCESS) == 0 ? nil : .current
    }

    /// Runs the program, and waits for its end on this thread.
    /// - Parameter isCanceled: called on this thread every few milliseconds. If it returns true, the program is ended.
    package func run(isCanceled: () -> Bool = { false }) -> Result {
        do throws(Errno) {
            let (group, output, errors, feed) = try start()
            var result = awaitEnd(of: group, output, errors, isCanceled)
            if feed?.end() == false, case .ended = result.outcome { result.outcome = .inputFailed }
            return result
        } catch {
            return Result(outcome: .notStarted(error))
        }
    }

    /// Starts the program. When this function has returned, only the program has the writing ends of the pipes.
    private func start() throws(Errno) -> (ProcessGroup, output: OutputCollector, errors: OutputCollector, InputFeed?) {
        guard program.hasPrefix("/") else { throw .invalidArgument }
        let output = try FileDescriptor.pipe()
        let errors = try FileDescriptor.pipe()
        let file: FileDescriptor
        var feed: InputFeed?
        switch input {
        case .bytes(let bytes): file = try .inMemory(bytes)
        case .file(let descriptor): file = descriptor
        case .stream(let read):
            let pipe = try FileDescriptor.pipe(nonBlocking: .writing)
            file = pipe.reading
            feed = try InputFeed(pipe.writing, read)
        }
        let group = try ProcessGroup(
            program: program, arguments: arguments, environment: environment,
            standard: [file, output.writing, errors.writing])
        return (
            group, OutputCollector(output.reading, limit: maxOutput), OutputCollector(errors.reading, limit: maxErrors),
            feed
        )
    }

    private var environment: [String] {
        var values: [String: String] = ["PATH": Self.defaultPath]
        for name in Self.inheritedVariables {
            if let value = getenv(name) { values[name] = String(cString: value) }
        }
        for (name, value) in variables { values[name] = value }
        return values.map { $0.key + "=" + $0.value }
    }

    private func awaitEnd(
        of group: ProcessGroup, _ output: OutputCollector, _ errors: OutputCollector, _ isCanceled: () -> Bool
    ) -> Result {
        var output = output
        var errors = errors
        let deadline = SystemClock.deadline(in: timeout)
        /// The reason why the program is ended, and the time at which it is killed.
        var stop: (outcome: Outcome, killTime: Int64)?
        var wait: Int32 = 1
        while group.currentEnding == nil {
            let now = SystemClock.monotonicNanoseconds()
            if let stop {
                if now >= stop.killTime { break }
            } else if let outcome: Outcome = now >= deadline ? .timedOut : isCanceled() ? .canceled : nil {
                stop = (outcome, now + Self.stopTime.nanoseconds)
                group.signal(SIGTERM)
            }
            // The program usually ends when it closes its outputs, so its end is checked in short intervals from then on.
            wait = output.isOpen || errors.isOpen ? Self.checkInterval : min(wait * 2, Self.checkInterval)
            OutputCollector.collect(&output, &errors, waiting: wait)
        }
        // Ends the processes that the program started. They could keep the pipes open.
        group.kill()
        output.collectRemaining()
        errors.collectRemaining()
        let outcome = stop?.outcome ?? group.currentEnding.map { .ended($0) } ?? .canceled
        return Result(outcome: outcome, output: output.bytes, errors: errors.bytes, isOutputCut: output.isCut)
    }
}

/// Writes the input of a program to a pipe, on a thread.
private final class InputFeed: Sendable {
    private static let pieceSize = 256 << 10

    private enum State { case running, stopping, complete, failed }

    private let state = Monitor(State.running)
    private let thread: WorkerThread

    init(_ pipe: FileDescriptor, _ read: @escaping @Sendable (UnsafeMutableRawBufferPointer, Int64) -> Int?)
        throws(Errno)
    {
        let state = state
        thread = try WorkerThread(name: "program-input") {
            // A program that closes its input must not end this process.
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
            var buffer = [UInt8](repeating: 0, count: Self.pieceSize)
            var offset: Int64 = 0
            while true {
                guard let count = buffer.withUnsafeMutableBytes({ read($0, offset) }) else {
                    return state.withLock { $0 = .failed }
                }
                if count == 0 { return state.withLock { $0 = .complete } }
                let isWritten = buffer.withUnsafeBytes { bytes in
                    pipe.write(
                        UnsafeRawBufferPointer(rebasing: bytes[..<count]), while: { state.withLock { $0 == .running } })
                }
                // The program has ended, or need not read all of its input.
                if !isWritten { return }
                offset += Int64(count)
            }
        }
    }

    /// Ends the thread after the end of the program.
    /// - Returns: whether no read has failed.
    func end() -> Bool {
        state.withLock { if $0 == .running { $0 = .stopping } }
        thread.join()
        return state.withLock { $0 != .failed }
    }
}

extension FileDescriptor {
    /// Writes all bytes to a pipe whose writing does not wait.
    /// - Parameter continues: called several times a second; false ends the writing.
    /// - Returns: false if not all bytes were written.
    fileprivate func write(_ bytes: UnsafeRawBufferPointer, while continues: () -> Bool) -> Bool {
        var remaining = bytes
        while !remaining.isEmpty {
            guard continues() else { return false }
            let count = Glibc.write(rawValue, remaining.baseAddress, remaining.count)
            if count > 0 {
                remaining = UnsafeRawBufferPointer(rebasing: remaining[count...])
            } else if [.wouldBlock, .interrupted].contains(Errno.current) {
                var entry = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
                _ = poll(&entry, 1, 100)
            } else {
                return false
            }
        }
        return true
    }
}

/// Collects the first bytes that a program writes to a pipe, and discards the others.
private struct OutputCollector {
    private static let pieceSize = 64 << 10
    private let pipe: FileDescriptor
    private let limit: Int
    private(set) var bytes: [UInt8] = []
    /// Whether there were more bytes than the limit.
    private(set) var isCut = false
    /// Whether a process can still write.
    private(set) var isOpen = true

    init(_ pipe: FileDescriptor, limit: Int) {
        self.pipe = pipe
        self.limit = limit
    }

    /// Waits until one of the pipes has bytes or is closed, and reads them.
    static func collect(_ first: inout OutputCollector, _ second: inout OutputCollector, waiting milliseconds: Int32) {
        // poll(2) ignores negative descriptors.
        var entries = [first, second].map {
            pollfd(fd: $0.isOpen ? $0.pipe.rawValue : -1, events: Int16(POLLIN), revents: 0)
        }
        guard poll(&entries, 2, milliseconds) > 0 else { return }
        if entries[0].revents != 0 { _ = first.collectPiece() }
        if entries[1].revents != 0 { _ = second.collectPiece() }
    }

    /// Reads what the pipe contains, but not much more than the limit: a process that has left the group could write
    /// forever.
    mutating func collectRemaining() { while isOpen, !isCut, collectPiece() {} }

    /// Returns whether there were bytes.
    private mutating func collectPiece() -> Bool {
        var count = 0
        let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { buffer, initialized in
            count = read(pipe.rawValue, buffer.baseAddress, buffer.count)
            initialized = max(count, 0)
        }
        guard count > 0 else {
            if count == 0 || ![.wouldBlock, .interrupted].contains(Errno.current) { isOpen = false }
            return false
        }
        let part = piece.prefix(limit - bytes.count)
        if part.count < piece.count { isCut = true }
        bytes += part
        return true
    }
}

extension FileDescriptor {
    /// Creates a file in memory with this content, at offset 0 (memfd_create(2)).
    package static func inMemory(_ content: [UInt8]) throws(Errno) -> FileDescriptor {
        // Linux before 6.3 does not support the second flag, and an administrator can require it (vm.memfd_noexec).
        var number = memfd_create("input", UInt32(ONWARD_MFD_CLOEXEC | ONWARD_MFD_NOEXEC_SEAL))
        if number < 0 { number = memfd_create("input", UInt32(ONWARD_MFD_CLOEXEC)) }
        guard number >= 0 else { throw .current }
        let file = FileDescriptor(owning: number)
        try file.write(content, at: 0)
        return file
    }

    enum PipeEnd: Int { case reading, writing }

    /// Creates a pipe (pipe(2)).
    /// - Parameter end: the end whose calls do not wait.
    static func pipe(
        nonBlocking end: PipeEnd = .reading
    ) throws(Errno) -> (reading: FileDescriptor, writing: FileDescriptor) {
        var numbers: [Int32] = [-1, -1]
        guard pipe2(&numbers, O_CLOEXEC) == 0 else { throw .current }
        let pipe = (FileDescriptor(owning: numbers[0]), FileDescriptor(owning: numbers[1]))
        guard fcntl(numbers[end.rawValue], F_SETFL, O_NONBLOCK) == 0 else { throw .current }
        return pipe
    }
}
