import Glibc

extension ProcessControl {
    /// When this process started, in seconds since 1970, to a hundredth; `nil` where the system does not tell (proc(5)).
    package static func startSeconds() -> Double? {
        guard let file = try? FileDescriptor.open("/proc/self/stat", [.readOnly]),
            let bytes = try? file.content(atMost: 64 << 10)
        else { return nil }
        // The second field is the program's name in parentheses, whatever it holds; the start is the 22nd, in ticks
        // since the system's.
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
