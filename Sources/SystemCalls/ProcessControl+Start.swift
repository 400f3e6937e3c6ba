import Glibc

extension ProcessControl {
    /// The start of this process in seconds since 1970, with a precision of 0.01 s; `nil` if the system does not report
    /// it (proc(5)).
    package static func startSeconds() -> Double? {
        guard let file = try? FileDescriptor.open("/proc/self/stat", [.readOnly]),
            let bytes = try? file.content(atMost: 64 << 10)
        else { return nil }
        // The second field is the program's name in parentheses, and may contain any character. The 22nd field is the
        // start in ticks since the system was started.
        let remaining = String(decoding: bytes, as: UTF8.self).split(separator: ")").last ?? ""
        let fields = remaining.split(separator: " ")
        guard fields.count > 19, let ticks = Double(fields[19]) else { return nil }
        var sinceBoot = timespec()
        guard clock_gettime(CLOCK_BOOTTIME, &sinceBoot) == 0 else { return nil }
        let uptime = Double(sinceBoot.tv_sec) + Double(sinceBoot.tv_nsec) / 1e9
        let age = uptime - ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
        let start = Double(SystemClock.realtimeNanoseconds()) / 1e9 - age
        return (start * 100).rounded() / 100
    }
}
