import FoundationEssentials
import Glibc

/// The resources of a process, from proc(5).
struct ProcessUse: CustomStringConvertible {
    let descriptors: Int
    let threads: Int
    /// The resident memory in KiB.
    let resident: Int

    init(of process: pid_t) throws {
        let directory = "/proc/\(process)"
        descriptors = try FileManager.default.contentsOfDirectory(atPath: directory + "/fd").count
        threads = try FileManager.default.contentsOfDirectory(atPath: directory + "/task").count
        let status = FileManager.default.contents(atPath: directory + "/status") ?? Data()
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        resident = line.flatMap { Int($0.split(whereSeparator: \.isWhitespace).dropFirst().first ?? "") } ?? 0
    }

    /// The resources of all processes of a server together.
    init(of server: ServerProcess) throws {
        let uses = try server.process.all.map { try ProcessUse(of: $0.identifier) }
        descriptors = uses.reduce(0) { $0 + $1.descriptors }
        threads = uses.reduce(0) { $0 + $1.threads }
        resident = uses.reduce(0) { $0 + $1.resident }
    }

    var description: String { "\(descriptors) descriptors, \(threads) threads, \(resident) KiB" }
}
