import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A directory with many files. As it takes long to create, it is kept below the system's temporary directory from run
/// to run, and is used by one server at a time.
final class ManyFiles {
    /// The number of files: `ONWARD_LISTING_FILES`, or 100,000.
    static let count = ProcessInfo.processInfo.environment["ONWARD_LISTING_FILES"].flatMap { Int($0) } ?? 100_000

    /// The name of the directory below `files/` of the server that uses the directory.
    static let name = "many"

    /// The places of the directory, and the lock; nil with a shared storage, which has only the rows of the files.
    private let lent: (from: String, to: String, lock: FileDescriptor)?

    static func fileName(_ number: Int) -> String {
        "file " + String(repeating: "0", count: 7 - "\(number)".count) + "\(number) of many.bin"
    }

    /// Waits until no other run uses the directory, creates it if necessary, and moves it to the server.
    init(lentTo server: ServerProcess) throws {
        if let shared = server.shared {
            lent = nil
            try shared.makeFiles(
                in: Self.name, count: Self.count, named: "'file ' || lpad(number::text, 7, '0') || ' of many.bin'")
            return
        }
        let temporary = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        let base = temporary + "/onward-test-\(getuid())-many-\(Self.count)"
        let destination = server.path(of: Self.name)
        let lock = try FileDescriptor.open(base + ".lock", [.readWrite, .create])
        guard try pollUntil(within: .seconds(600), { try lock.tryLock() ? true : nil }) != nil else {
            throw TestFailure("another run uses \(base)")
        }
        if access(base, F_OK) != 0 { try Self.make(base) }
        guard rename(base, destination) == 0 else { throw Errno.current }
        lent = (base, destination, lock)
    }

    deinit {
        guard let lent else { return }
        withExtendedLifetime(lent.lock) { _ = rename(lent.to, lent.from) }
    }

    private static func make(_ path: String) throws {
        let unfinished = path + ".unfinished"
        try? FileManager.default.createDirectory(atPath: unfinished, withIntermediateDirectories: false)
        let directory = try FileDescriptor.open(unfinished, [.readOnly, .directory])
        for number in 0..<count { _ = try directory.open(at: fileName(number), [.writeOnly, .create]) }
        guard rename(unfinished, path) == 0 else { throw Errno.current }
    }
}
