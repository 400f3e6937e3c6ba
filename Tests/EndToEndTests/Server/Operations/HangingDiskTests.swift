import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A disk whose calls neither succeed nor fail, but do not return.
@Suite(
    "Hanging disks", .blocking,
    .enabled(if: SystemCallTrace.isPossible, "needs strace, and the right to trace"))
struct HangingDiskTests {
    @Test(
        "/readyz responds while the disk hangs: at first with the last result, then with 503 and store-check-stuck")
    func readiness() throws {
        try withServer { server in
            #expect(try server.exchange(.get("/readyz")).status == 200)
            let hang = try Tracer(delaying: "fdatasync", of: server, microseconds: 60_000_000)
            // Waits until the server reports the check as stuck.
            let stuck = try pollUntil(within: .seconds(30)) { () -> Response? in
                let begun = ContinuousClock.now
                let response = try server.exchange(.get("/readyz"), within: .seconds(30))
                #expect(ContinuousClock.now - begun < .seconds(8))
                return response.status == 503 ? response : nil
            }
            #expect(stuck?.problem?.reasons == ["store-check-stuck"])
            // No connection waits: a hundred responses arrive soon, and the server keeps no thread for them.
            let begun = ContinuousClock.now
            for _ in 0..<100 {
                let response = try server.exchange(.get("/readyz"), within: .seconds(30))
                #expect(response.problem?.reasons == ["store-check-stuck"])
            }
            #expect(ContinuousClock.now - begun < .seconds(20))
            #expect(try server.exchange(.get("/healthz")).status == 200)
            let threads = try FileManager.default.contentsOfDirectory(
                atPath: "/proc/\(server.process.identifier)/task")
            #expect(threads.count < 40)
            try hang.end(within: .seconds(5))
            #expect(try eventually { try server.exchange(.get("/readyz")).status == 200 })
        }
    }
}
