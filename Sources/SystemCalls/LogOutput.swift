import Glibc

/// Where log lines go: a descriptor that somebody else owns, standard error unless told otherwise.
public struct LogOutput: Sendable {
    private let descriptor: Int32

    public init(descriptor: Int32 = STDERR_FILENO) { self.descriptor = descriptor }

    /// Writes all of a line with as few calls as the system allows, so that lines of several processes do not mix.
    /// A log that cannot be written is no reason to stop serving.
    public func write(_ line: String) { try? deliver(line) }

    /// The same, for whom it matters.
    /// - Throws: what keeps the rest from being written.
    public func deliver(_ text: String) throws(Errno) {
        var text = text
        let failure = text.withUTF8 { bytes -> Errno? in
            var rest = UnsafeRawBufferPointer(bytes)
            while let start = rest.baseAddress, !rest.isEmpty {
                let count = Glibc.write(descriptor, start, rest.count)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return .current }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            return nil
        }
        if let failure { throw failure }
    }
}
