import Glibc

/// Tells the threads on which libmicrohttpd serves connections from all others of the process.
package enum ConnectionThread {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// Marks the calling thread for the rest of its life.
    static func mark() { pthread_setspecific(key, UnsafeRawPointer(bitPattern: 1)) }

    /// Whether the calling thread serves a connection. Neither allocates nor blocks once the first thread is marked.
    package static var isCurrent: Bool { pthread_getspecific(key) != nil }
}
