import Glibc
import SystemCalls

/// What the reference server knows of an upload.
struct ReferenceUpload {
    var bytes: [UInt8] = []
    var length: Int64?
    var isComplete = false
    var isGone = false
    let created = SystemClock.monotonicNanoseconds()
    /// Raised by every request that takes the upload over.
    var epoch = 0
    /// The connection of the creation or append under way.
    var holder: FileDescriptor?
    var digests: [String: [UInt8]] = [:]
    var wanted: String?
    var location = ""
    /// The credentials of the creation.
    var owner: String?
    /// The final response, to be given again.
    var final: ReferenceReply?

    /// What a crash leaves.
    mutating func crash(server: ReferenceServer) {
        epoch += 1
        holder = nil
        if server.has(.lowersOffsetAfterRestart), !isComplete { bytes = Array(bytes.dropLast()) }
        if let size = server.diskSize { bytes = Array(bytes.prefix(Int(size))) }
    }

    /// Ends the request under way; what it still gets is void.
    mutating func takeOver() {
        epoch += 1
        if let holder { shutdown(holder.rawValue, Int32(SHUT_RDWR)) }
        holder = nil
    }
}

/// A final response.
struct ReferenceReply: Sendable {
    var status: Int
    var fields: [(String, String)] = []
    var content: [UInt8] = []
    var closes = false
}
