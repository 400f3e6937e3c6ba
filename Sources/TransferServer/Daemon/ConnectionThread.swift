import Glibc
import SystemCalls

/// Tells the threads on which libmicrohttpd serves connections from all others of the process.
package enum ConnectionThread {
    private static let yes = 1
    private static let no = 2

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// Whether the calling thread serves a connection, told by the name that libmicrohttpd gives it, which is asked for
    /// once. Neither allocates nor blocks after the first call in the process.
    package static var isCurrent: Bool {
        if let known = pthread_getspecific(key) { return Int(bitPattern: known) == yes }
        let serves = ThreadName.hasPrefix("MHD-connection")
        pthread_setspecific(key, UnsafeRawPointer(bitPattern: serves ? yes : no))
        return serves
    }
}
