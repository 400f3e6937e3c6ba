import ConformanceKit
import Foundation
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@Suite("Command: files that are sent at the same time", .blocking)
struct SimultaneousUploadsTests {
    /// Waits until the content of this number of requests has arrived.
    private func awaitContent(_ server: ScriptedServer, _ count: Int) {
        #expect(eventually { server.requests.filter(\.isComplete).count == count })
    }

    @Test(
        "A second run of the same command does not remove the list of the running one",
        arguments: [[], ["--restart"]])
    func secondRun(_ options: [String]) throws {
        let server = try ScriptedServer.announcing { _, reply in reply.stall() }
        let home = try CommandHome()
        let files = try ["a", "b"].map { try home.file([1], $0) }
        let command = ["put"] + files + [server.url + "/files/"]
        let run = try home.start(command)
        awaitContent(server, 1)
        let second = try home.run(["put"] + options + command.dropFirst())
        try second.expect(75)
        #expect(second.errors.contains("onward put: a: process"), "\(second.errors)")
        #expect(try home.lists().count == 1)
        run.process.kill(SIGKILL)
        _ = try run.process.awaitEnding()
        let status = try home.run("status", "--json")
        #expect(try status.objects().compactMap { $0.text("file") } == [files[0]])
    }

    @Test("A second run does not remove the list of a running command whose first upload has no upload resource yet")
    func secondRunBeforeCreation() throws {
        let server = try ScriptedServer { _, reply in reply.stall() }
        let home = try CommandHome()
        let files = try ["a", "b"].map { try home.file([1], $0) }
        let command = ["put"] + files + [server.url + "/files/"]
        let run = try home.start(command)
        #expect(server.awaitRequests(1))
        try home.run(command).expect(75)
        #expect(try home.lists().count == 1)
        run.process.kill(SIGKILL)
        _ = try run.process.awaitEnding()
    }

    @Test("Canceling one upload does not remove the list of a running command")
    func canceled() throws {
        let server = try ScriptedServer { request, reply in
            if request.method != "POST" { return try reply.respond(204) }
            let isSecond = request.fields["Content-Disposition"]?.contains("b.bin") == true
            let location = isSecond ? "/u/b" : "/u/a"
            try reply.interim(104, Fields([ScriptedUpload.version, ("Location", location), ("Upload-Complete", "?0")]))
            if isSecond { return reply.reset() }
            try reply.discardContent()
            reply.stall()
        }
        let home = try CommandHome()
        let (first, second) = (try home.file([1], "a.bin"), try home.file([2], "b.bin"))
        try home.run("put", "--retries", "0", second, server.url + "/files/").expect(75)
        let name = String(try #require(home.stateNames.first).dropLast(".state".count))
        let run = try home.start("put", first, second, server.url + "/files/")
        awaitContent(server, 1)
        try home.run("cancel", name).expect(0)
        #expect(try home.lists().count == 1)
        run.process.kill(SIGKILL)
        _ = try run.process.awaitEnding()
        let status = try home.run("status", "--json")
        #expect(try status.objects().compactMap { $0.text("file") } == [first])
    }

    /// Each call of fdatasync adds a byte to a log, and then waits while a file exists.
    private static let heldSynchronization = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <stdlib.h>
        #include <unistd.h>

        int fdatasync(int file) {
            int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
            int log = open(getenv("SYNCHRONIZATIONS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
            if (write(log, "s", 1) != 1) abort();
            close(log);
            while (access(getenv("HOLD"), F_OK) == 0) usleep(1000);
            return next(file);
        }
        """#

    @Test(
        "While the list of a command is synchronized, the other uploads continue",
        .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"))
    func synchronization() throws {
        let home = try CommandHome()
        let library = try PreloadedLibrary(Self.heldSynchronization, in: home.directory)
        let (log, hold) = (home.path + "/synchronizations", home.path + "/hold")
        let synchronizations = { @Sendable in FileManager.default.contents(atPath: log)?.count ?? 0 }
        let state = Monitor((creations: 0, isHeld: false))
        // The first file is sent alone. The state of the second upload is saved until all other creations have arrived,
        // which are refused. 20 of them begin after the 64 that can run at the same time.
        let count = 85
        let server = try ScriptedServer { request, reply in
            if request.method != "POST" { return try reply.respond(204) }
            let number = state.withLock { state in
                state.creations += 1
                return state.creations
            }
            if number > 2 {
                _ = state.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0.isHeld ? () : nil }
                if number == count { #expect(unlink(hold) == 0) }
                return try reply.respond(422)
            }
            if number == 2 { #expect(FileManager.default.createFile(atPath: hold, contents: nil)) }
            try reply.interim(104, Fields([ScriptedUpload.version, ("Location", "/u/\(number)")]))
            if number == 2 {
                #expect(eventually { synchronizations() == 3 })
                state.withLock { $0.isHeld = true }
                state.notifyAll()
            }
            try reply.discardContent()
            try reply.respondCreated(number)
        }
        let files = try (0..<count).map { try home.file([1], "f\($0)") }
        let run = try home.start(
            ["put", "--quiet"] + files + [server.url + "/files/"],
            environment: ["LD_PRELOAD": library.path, "SYNCHRONIZATIONS": log, "HOLD": hold])
        try run.expect(69)
        #expect(state.withLock { $0.creations } == count)
        // The list is synchronized for the state of each of two uploads, and for their ends.
        #expect(synchronizations() == 4)
    }

    @Test("After a signal, there is a message with the name of each file, and the advice is printed once")
    func paused() throws {
        let server = try ScriptedServer.announcing { number, reply in
            if number > 1 { reply.stall() } else { try reply.respondCreated(number) }
        }
        let home = try CommandHome()
        let files = try (0..<4).map { try home.file([1], "f\($0)") }
        let run = try home.start(["put"] + files + [server.url + "/files/"])
        awaitContent(server, 4)
        run.process.kill(SIGTERM)
        try run.expect(75)
        for number in 1...3 { #expect(run.errors.contains("onward put: f\(number): "), "\(run.errors)") }
        #expect(run.errors.ranges(of: "Run the same command again").count == 1, "\(run.errors)")
    }

    @Test(
        "After the server has refused a new upload because it has too many, one file is sent at a time",
        arguments: [429, 503])
    func tooMany(status: Int) throws {
        // The number of creations, and whether the uploads that the server has accepted may end.
        let state = Monitor((creations: 0, isOpen: false))
        let names = Monitor<[String]>([])
        let server = try ScriptedServer { request, reply in
            if request.method != "POST" { return try reply.respond(204) }
            names.withLock { $0.append(request.fields["Content-Disposition"] ?? "") }
            let (number, isOpen) = state.withLock { state in
                state.creations += 1
                return (state.creations, state.isOpen)
            }
            if number == 65 {
                return try reply.respond(status, ["Retry-After": "1"])
            }
            try reply.interim(104, Fields([ScriptedUpload.version, ("Location", "/u/\(number)")]))
            try reply.discardContent()
            if number > 1, !isOpen {
                _ = state.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0.isOpen ? () : nil }
            }
            try reply.respondCreated(number)
        }
        let home = try CommandHome()
        let files = try (0..<72).map { try home.file([1], "f\($0)") }
        let run = try home.start(["put", "--json"] + files + [server.url + "/files/"])
        _ = try run.awaitEvent("interrupted")
        state.withLock { $0.isOpen = true }
        state.notifyAll()
        try run.expect(0)
        // The next request after the refusal is the repeated one, and no new file takes its place.
        let all = names.withLock { $0 }
        #expect(all.count == 73 && all[65] == all[64], "\(all)")
        #expect(Set(all).count == 72)
    }
}
