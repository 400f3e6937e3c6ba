import Glibc

/// Unpredictable numbers from the kernel, which are suitable for secrets. Many numbers are read with one call
/// (getentropy(3)).
///
/// A child process that is forked without executing a program would get the same numbers; no process of this package
/// does that.
package struct KernelRandom: RandomNumberGenerator, Sendable {
    private struct Supply {
        /// The bytes that one call of getentropy(3) can return.
        private var numbers = [UInt64](repeating: 0, count: 32)
        private var count = 0

        mutating func next() -> UInt64 {
            if count == 0 {
                numbers.withUnsafeMutableBytes { bytes in
                    // Only a kernel without getrandom(2) makes this call fail.
                    precondition(getentropy(bytes.baseAddress, bytes.count) == 0, "getentropy: \(Errno.current)")
                }
                count = numbers.count
            }
            count -= 1
            // The returned number can become a secret, so it is erased here.
            defer { numbers[count] = 0 }
            return numbers[count]
        }
    }

    private static let supply = Monitor(Supply())

    package init() {}

    package func next() -> UInt64 { Self.supply.withLock { $0.next() } }
}
