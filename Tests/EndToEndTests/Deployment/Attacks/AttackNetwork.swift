import Glibc
import TestSupport
import Testing

/// Two network namespaces, one for an attack and one for users, each with an address of its own. They are removed with
/// this object.
final class AttackNetwork {
    private static let script = OperatorFiles.directory + "/../scripts/attack-network"

    private let name: String
    /// The addresses of this machine in the two namespaces.
    private let addresses: [Substring]

    /// Whether this process may be able to create namespaces: only root can do so, and not in every container.
    static var mayBePossible: Bool { geteuid() == 0 && access("/usr/bin/ip", X_OK) == 0 }

    init() throws {
        name = "owt\(getpid() % 1_000_000)"
        let process = try ChildProcess("/bin/sh", ["-c", "exec \"$0\" add \"$1\" 1>&2", Self.script, name])
        let ending = try process.awaitEnding()
        addresses = process.errorOutput.split(separator: "\n")
        guard ending == .exited(0), addresses.count == 2 else { throw TestFailure(process.errorOutput) }
    }

    deinit { _ = try? ChildProcess(Self.script, ["remove", name]).awaitEnding() }

    /// The name of each namespace, and the host for URLs that are requested in it.
    var attack: (namespace: String, host: String) { (name + "-a", String(addresses[0])) }
    var users: (namespace: String, host: String) { (name + "-u", String(addresses[1])) }
}
