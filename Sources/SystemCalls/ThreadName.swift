import CLinux
import Glibc

/// The name that the calling thread bears for debuggers (pthread_getname_np(3)).
public enum ThreadName {
    /// Whether it begins with these bytes. Neither allocates nor blocks.
    public static func hasPrefix(_ prefix: StaticString) -> Bool {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16) { buffer in
            guard let name = buffer.baseAddress, pthread_getname_np(pthread_self(), name, buffer.count) == 0 else {
                return false
            }
            return strncmp(
                name, UnsafeRawPointer(prefix.utf8Start).assumingMemoryBound(to: CChar.self), prefix.utf8CodeUnitCount)
                == 0
        }
    }
}
