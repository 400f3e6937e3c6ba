import Glibc
import HTTPSemantics
import SystemCalls

/// Tells the threads on which libmicrohttpd serves connections, one each, from all others of the process, and keeps what
/// such a thread knows of the bytes that it receives.
package enum ConnectionThread {
    /// Used by its own thread alone.
    private final class Reception {
        var framing = ReceivedFraming()
        var isDecrypted = false
        /// Requests that libmicrohttpd has begun to serve.
        var requests = 0
    }

    /// Stands for nothing, on other threads.
    private static var none: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: 1) }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key) { value in
            guard let value, value != UnsafeMutableRawPointer(bitPattern: 1) else { return }
            Unmanaged<Reception>.fromOpaque(value).release()
        }
        return key
    }()

    /// That of the calling thread, which is known by the name that libmicrohttpd gives it; this is asked for once.
    private static var reception: Reception? {
        if let known = pthread_getspecific(key) {
            return known == none ? nil : Unmanaged<Reception>.fromOpaque(known).takeUnretainedValue()
        }
        let reception = ThreadName.hasPrefix("MHD-connection") ? Reception() : nil
        pthread_setspecific(key, reception.map { Unmanaged.passRetained($0).toOpaque() } ?? none)
        return reception
    }

    /// Whether the calling thread serves a connection. Neither allocates nor blocks after its first call on a thread.
    package static var isCurrent: Bool { reception != nil }

    /// Looks at what the calling thread has received, and may change it, before it is read.
    /// - Parameter isDecrypted: whether TLS has been taken off; what arrives with it on says nothing.
    /// - Returns: how many bytes are left, at the beginning of `bytes`.
    package static func received(_ bytes: UnsafeMutableRawBufferPointer, isDecrypted: Bool) -> Int {
        guard let reception else { return bytes.count }
        if isDecrypted && !reception.isDecrypted {
            reception.isDecrypted = true
            reception.framing = ReceivedFraming()
        }
        return isDecrypted == reception.isDecrypted ? reception.framing.receive(bytes) : bytes.count
    }

    /// Whether the requests of the calling thread are looked at before libmicrohttpd reads them.
    static var isFollowed: Bool { reception.map { $0.framing.requests > 0 } ?? false }

    /// libmicrohttpd begins to serve a request on the calling thread.
    /// - Returns: which of the connection's it is, counted from 1.
    static func beginRequest() -> Int {
        guard let reception else { return 0 }
        reception.requests += 1
        return reception.requests
    }

    /// What is wrong with the framing of a request of the calling thread's connection, as far as it was received.
    static func fault(ofRequest number: Int) -> FramingRefusal? {
        guard let fault = reception?.framing.fault, fault.request == number else { return nil }
        return fault.refusal
    }
}
