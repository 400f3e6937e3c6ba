import FoundationEssentials
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@Suite(
    "Command: a full disk in the state directory", .blocking,
    .enabled(if: SmallDisk.isPossible, SmallDisk.requirement))
struct FullStateDiskTests {
    @Test("if a state cannot be saved, the command reports that the earlier state is usable, and later resumes from it")
    func olderState() throws {
        try withServer { server in
            let home = try CommandHome()
            let bytes = Payload.bytes(8_000_000)
            let file = try home.file(bytes)
            let states = home.path + "/small"
            #expect(mkdir(states, 0o700) == 0)
            let disk = try SmallDisk(on: states, "size=256k,mode=700")
            defer { disk.unmount() }
            let command = ["put", file, server.url("/files/a.bin")]
            let environment = ["XDG_STATE_HOME": states]
            let run = try home.start(command + ["--json", "--limit-rate", "1M"], environment: environment)
            _ = try run.awaitEvent("progress") { ($0.number("acknowledged") ?? 0) > 0 }
            let ballast = try SmallDisk.fill(states)
            let moved = try run.awaitEvent("progress").number("sent") ?? 0
            _ = try run.awaitEvent("progress") { ($0.number("sent") ?? 0) > moved + 1_500_000 }
            run.process.kill(SIGINT)
            try run.expect(74)
            #expect(run.errors.contains("is still usable. Correct the cause"), "\(run.errors)")
            #expect(unlink(ballast) == 0)
            let again = try home.start(command + ["--json"], environment: environment)
            try again.expect(0)
            #expect(try again.objects().contains { $0.name == "resumed" }, "\(again.output)")
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }

    @Test("if a put of several files cannot save a state file, the state in its list is kept")
    func listedState() throws {
        let server = try ScriptedServer { request, reply in
            guard request.method == "POST" else { return try reply.respond(404) }
            try reply.interim(104, Fields([ScriptedUpload.version, ("Location", "/u/1"), ("Upload-Complete", "?0")]))
            try reply.discardContent()
            reply.stall()
        }
        let home = try CommandHome()
        let files = try ["a", "b"].map { try home.file([1, 2, 3], $0) }
        let states = home.path + "/small"
        #expect(mkdir(states, 0o700) == 0)
        let disk = try SmallDisk(on: states, "size=256k,mode=700")
        defer { disk.unmount() }
        let environment = ["XDG_STATE_HOME": states]
        let run = try home.start(["put"] + files + [server.url + "/files/"], environment: environment)
        // The state is in the list before the content is sent.
        #expect(eventually { server.requests.first?.isComplete == true })
        let ballast = try SmallDisk.fill(states)
        run.process.kill(SIGTERM)
        try run.expect(74)
        #expect(run.errors.contains("onward put: a: the state to resume from cannot be saved"), "\(run.errors)")
        #expect(unlink(ballast) == 0)
        let status = try home.start("status", "--json", environment: environment)
        try status.expect(0)
        #expect(try status.objects().compactMap { $0.text("file") } == [files[0]])
    }
}
