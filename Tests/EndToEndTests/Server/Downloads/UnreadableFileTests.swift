import ConformanceKit
import FoundationEssentials
import Glibc
import HTTPSemantics
import TestSupport
import Testing

/// A disk that cannot read published files.
@Suite("Unreadable files", .blocking, .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"))
struct UnreadableFileTests {
    /// Makes reads of published files fail while the file that `FAILING_READS` names exists.
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>

        static int fails(int descriptor) {
            char link[64], path[4096];
            const char *failing = getenv("FAILING_READS");
            if (!failing || access(failing, F_OK)) return 0;
            snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
            ssize_t length = readlink(link, path, sizeof path - 1);
            if (length < 0) return 0;
            path[length] = 0;
            return strstr(path, "/files/") != NULL;
        }

        ssize_t pread(int descriptor, void *buffer, size_t count, off_t offset) {
            if (fails(descriptor)) {
                errno = EIO;
                return -1;
            }
            return ((ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(
                descriptor, buffer, count, offset);
        }

        ssize_t pread64(int descriptor, void *buffer, size_t count, off_t offset) {
            return pread(descriptor, buffer, count, offset);
        }
        """

    @Test("A small file that cannot be read is a 500 with a reason; the connection and the server remain usable")
    func small() throws {
        let directory = try TemporaryDirectory()
        let library = try PreloadedLibrary(Self.source, in: directory)
        let failing = directory.path + "/failing"
        let environment = ["LD_PRELOAD": library.path, "FAILING_READS": failing]
        let server = try ServerProcess(environment: environment)
        defer { server.process.kill(SIGKILL) }
        let content = Array("some content".utf8)
        #expect(try server.exchange(Request("PUT", "/files/a", [], .bytes(content))).status == 201)
        #expect(FileManager.default.createFile(atPath: failing, contents: nil))
        let connection = try server.connect()
        for fields in [[], [("Range", "bytes=1-3")]] {
            let response = try connection.exchange(Request("GET", "/files/a", fields))
            #expect(response.status == 500)
            #expect(response.problem?.code == "storage-error")
            #expect(response.value("ETag") == nil && response.value("Content-Range") == nil)
        }
        #expect(try connection.exchange(Request("HEAD", "/files/a")).status == 200)
        try FileManager.default.removeItem(atPath: failing)
        #expect(try connection.exchange(Request("GET", "/files/a")).content == content)
    }
}
