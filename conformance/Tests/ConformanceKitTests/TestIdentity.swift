import Foundation
import SystemCalls

@testable import ConformanceKit

/// A certificate for 127.0.0.1 that it signed itself, and its key, in a directory that goes with it.
final class TestIdentity: Sendable {
    let directory: String
    var certificate: String { directory + "/cert.pem" }
    var key: String { directory + "/key.pem" }

    init() throws {
        directory = NSTemporaryDirectory() + "/conformance-\(UInt64.random(in: 0...UInt64.max))"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let process = try ProcessGroup(
            shell:
                "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
                + "-addext subjectAltName=IP:127.0.0.1 -keyout '\(key)' -out '\(certificate)'",
            output: directory + "/output")
        let deadline = Deadline(in: .seconds(60))
        while process.currentEnding == nil, !deadline.isOver { Deadline.pause(.milliseconds(10)) }
        guard process.currentEnding == .exited(0) else { throw RunFailure("openssl makes no certificate") }
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }
}
