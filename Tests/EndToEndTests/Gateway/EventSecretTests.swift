import ConformanceKit
import TestSupport
import Testing

/// The secrets with which events are signed, and the mistakes in the settings of events.
@Suite("Gateway: the secrets and settings of events", .blocking)
struct GatewayEventSecretTests {
    @Test("a secret is replaced: both secrets sign until the old one is removed, and a broken file changes nothing")
    func rotation() throws {
        // The endpoint verifies the signatures of every request by the secrets that were written last.
        let endpoint = try EventEndpoint()
        let (old, new) = (EventEndpoint.secrets[0], EventEndpoint.secrets[1])
        try endpoint.withServer { server in
            try server.store(["/files/1"])
            #expect(endpoint.awaitAccepted(1).count == 1)
            for (count, secrets) in [[old, new], [new]].enumerated() {
                try endpoint.write(secrets: secrets)
                try server.reload()
                try server.store(["/files/\(count + 2)"])
                #expect(endpoint.awaitAccepted(count + 2).count == count + 2)
            }
            for (count, broken) in [["whsec_AAAA"], [], [old, new, old], ["# none"]].enumerated() {
                try endpoint.write(secrets: broken, areValid: false)
                try server.reload()
                #expect(server.log.contains("error: the secrets of events stay as they were: "))
                try server.store(["/files/\(count + 4)"])
                #expect(endpoint.awaitAccepted(count + 4).count == count + 4)
            }
            #expect(endpoint.attempts.count == 7)
            for secret in EventEndpoint.secrets + ["whsec_AAAA"] { #expect(!server.log.contains(secret)) }
        }
    }

    @Test("requests are not signed without secrets; a Unix socket as the receiver")
    func unsigned() throws {
        let directory = try TemporaryDirectory()
        let endpoint = try EventEndpoint(secrets: [], unixPath: directory.path + "/s")
        try endpoint.withServer { server in
            try server.store(["/files/1"])
            #expect(endpoint.awaitAccepted(1).first?.data.target == "/files/1")
            #expect(endpoint.origin.requests.allSatisfy { !$0.fields.contains("webhook-signature") })
        }
    }

    @Test(
        "mistakes are reported before the server starts, with what to do",
        arguments: [
            (["x"], ["'x' is not a destination", "http://HOST:PORT/PATH", "absolute path of a program"]),
            (["http://127.0.0.1:1/e,keep=1h"], ["keep=3600s", "retry=86400s", "longer keep= or a shorter retry="]),
            (["http://127.0.0.1:1/e,retry=8d"], ["keep=604800s", "retry=691200s"]),
            (["http://127.0.0.1:1/e,max=0,color=red"], ["max=100000", "'color=red' is not a setting of events"]),
            (["/etc"], ["/etc is not a program that this user can run"]),
            (["/etc/passwd"], ["/etc/passwd is not a program that this user can run: Permission denied"]),
            (["/no/such/program"], ["/no/such/program is not a program", "No such file"]),
            (["/bin/cat", "--events-secrets", "/etc/passwd"], ["only requests are signed"]),
            (["http://127.0.0.1:1/e", "--events-secrets", "/dev/null"], ["there are 0 secrets"]),
        ] as [([String], [String])])
    func mistakes(values: [String], parts: [String]) throws {
        let directory = try TemporaryDirectory()
        let process = try ServerProcess.run(["--root", directory.path + "/data", "--events"] + values)
        #expect(try process.awaitEnding() == .exited(64))
        for part in parts { #expect(process.errorOutput.contains(part), "\(process.errorOutput)") }
        #expect(!process.errorOutput.contains("origin"), "\(process.errorOutput)")
    }
}
