import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport

/// A wall clock that can be set for one process: the number of seconds in a file is added to `CLOCK_REALTIME`.
struct ShiftedClock {
    private let directory: TemporaryDirectory
    private let library: PreloadedLibrary

    init() throws {
        directory = try TemporaryDirectory()
        library = try PreloadedLibrary(Self.source, in: directory)
        try shift(by: 0)
    }

    /// The environment of the process.
    var environment: [String: String] {
        ["LD_PRELOAD": library.path, "SHIFT_FILE": directory.path + "/shift"]
    }

    /// Sets the clock: from now on it differs from the system's clock by this number of seconds.
    func shift(by seconds: Int) throws {
        let file = directory.path + "/shift"
        try Data(String(seconds).utf8).write(to: URL(filePath: file + ".new"))
        try FileManager.default.moveReplacing(file + ".new", file)
    }

    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <stdlib.h>
        #include <time.h>
        #include <unistd.h>

        static long shift(void) {
            char text[32] = {0};
            const char *name = getenv("SHIFT_FILE");
            int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
            if (file < 0) return 0;
            long count = read(file, text, sizeof text - 1);
            close(file);
            return count > 0 ? atol(text) : 0;
        }

        int clock_gettime(clockid_t clock, struct timespec *result) {
            static int (*real)(clockid_t, struct timespec *);
            if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
            int error = real(clock, result);
            if (error == 0 && clock == CLOCK_REALTIME) result->tv_sec += shift();
            return error;
        }

        time_t time(time_t *result) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """
}

extension FileManager {
    /// Replaces a file in one step, with rename(2).
    fileprivate func moveReplacing(_ source: String, _ destination: String) throws {
        guard rename(source, destination) == 0 else { throw Errno.current }
    }
}
