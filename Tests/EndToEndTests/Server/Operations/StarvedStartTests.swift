import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A system that has no thread to give.
@Suite(
    "Starved starts", .blocking,
    .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"))
struct StarvedStartTests {
    /// Makes one creation of a thread fail, counted from 1.
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

    @Test("Without a thread the server starts completely or not at all: status 71, the reason, nothing listens")
    func everyThread() throws {
        let directory = try TemporaryDirectory()
        let library = try PreloadedLibrary(Self.source, in: directory)
        let port = try FixedPort.next()
        var failed = 0
        var started = 0
        // Only the thread of a connection is tried twice, so that failures of later threads follow.
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
        // Catalog, files, store, log, timeouts, expiry, connections.
        #expect(failed >= 10)
    }
}
