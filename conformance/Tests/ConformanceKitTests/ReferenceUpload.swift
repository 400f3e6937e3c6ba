import Glibc
import SystemCalls

/// An upload of the reference server.
struct ReferenceUpload {
    var bytes: [UInt8] = []
    var length: Int64?
    var isComplete = false
    var isGone = false
    let created = SystemClock.monotonicNanoseconds()
    /// A number that increases whenever a request takes over the upload.
    var epoch = 0
    /// The connection of the running creation or append.
    var holder: FileDescriptor?
    var digests: [String: [UInt8]] = [:]
    var wanted: String?
    var location = ""
    /// The credentials of the creation.
    var owner: String?
    /// The final response, which repeated requests get again.
    var final: ReferenceReply?

    /// Changes the upload as a crash does.
    mutating func crash(server: ReferenceServer) {
        epoch += 1
        holder = nil
        if server.has(.lowersOffsetAfterRestart), !isComplete { bytes = Array(bytes.dropLast()) }
        if let size = server.diskSize { bytes = Array(bytes.prefix(Int(size))) }
    }

    /// Ends the running request. Content that it receives afterwards is discarded.
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
