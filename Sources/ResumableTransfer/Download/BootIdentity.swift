import SystemCalls

/// By what one run of the system is told from others.
enum BootIdentity {
    /// Empty where the system does not tell.
    static let current: String = {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
        defer { buffer.deallocate() }
        guard let file = try? FileDescriptor.open("/proc/sys/kernel/random/boot_id", .readOnly),
            let count = try? file.read(into: buffer, at: 0)
        else { return "" }
        return String(decoding: buffer[..<count].prefix { $0 > 0x20 }, as: UTF8.self)
    }()
}
