import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A system on which the creation of a thread fails.
@Suite(
    "Starts without threads", .blocking,
    .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"))
struct StarvedStartTests {
    /// Makes the creation of one thread fail; threads are counted from 1.
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <pthread.h>
        #include <stdlib.h>

        int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
            static int count;
            const char *failing = getenv("FAILING_THREAD");
            if (__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) == atoi(failing ? failing : "0")) return EAGAIN;
            return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
                RTLD_NEXT, "pthread_create"))(thread, attributes, body, argument);
        }
        """

    @Test("If a thread cannot be created, the server starts completely, or ends with 71, a reason and no open listener")
    func everyThread() throws {
        let directory = try TemporaryDirectory()
        let library = try PreloadedLibrary(Self.source, in: directory)
        let port = try FixedPort.next()
        var failed = 0
        var started = 0
        // Each run lets the creation of the next thread fail. The server tries again, and starts, only if that thread
        // serves connections.
        while started < 3 {
            let process = try ServerProcess.run(
                ["--root", directory.path + "/data", "--listen", "127.0.0.1:\(port)", "--min-free", "0"],
                environment: ["LD_PRELOAD": library.path, "FAILING_THREAD": "\(failed + started + 1)"])
            defer { process.kill(SIGKILL) }
            let isListening: Bool = try process.awaitErrorOutput(within: .seconds(30)) { text in
                text.contains("listening on") ? true : text.contains("TasksMax=") ? false : nil
            }
            if isListening {
                started += 1
                continue
            }
            #expect(try process.awaitEnding(within: .seconds(30)) == .exited(71), "\(process.errorOutput)")
            #expect(process.errorOutput.contains("EAGAIN"), "\(process.errorOutput)")
            let socket = try ListeningSocket(.tcp(host: "127.0.0.1", port: port))
            _ = FileDescriptor(owning: socket.release())
            failed += 1
            try #require(failed < 50)
        }
        // The threads of the catalog, files, store, log, timeouts, expiry and connections.
        #expect(failed >= 10)
    }
}
