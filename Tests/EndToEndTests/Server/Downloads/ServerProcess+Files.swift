import ConformanceKit
import Glibc
import Testing

extension ServerProcess {
    /// The URL of a path of this server.
    func url(_ path: String) -> String { "http://\(authority)\(path)" }

    /// The path of a published file.
    func path(of name: String) -> String { data.path(of: name) }

    /// Creates a published file without the server, as a user might do. With a shared storage this function uploads the
    /// file.
    func place(_ bytes: [UInt8], as name: String) throws {
        if shared == nil { try data.place(bytes, as: name) } else { try publish(bytes, as: name.addingEscapes) }
    }

    /// Creates a published directory and its missing parent directories.
    func makeDirectories(_ path: String) throws {
        if let shared { try shared.makeDirectories(path) } else { try data.makeDirectories(path) }
    }

    /// Sets the modification time of a published file, in seconds since 1970.
    func setModified(_ name: String, to seconds: Int, nanoseconds: Int = 0) throws {
        guard let shared else { return try data.setModified(name, to: seconds, nanoseconds: nanoseconds) }
        try shared.database.query(
            """
            UPDATE onward.name SET modified = \(seconds)000000000 + \(nanoseconds)
            WHERE CASE parent WHEN '' THEN name ELSE parent || '/' || name END = '\(name)'
            """)
    }
}

/// The size of a file in bytes; 0 if the file does not exist.
func fileSize(_ path: String) -> Int {
    var information = stat()
    return stat(path, &information) == 0 ? Int(information.st_size) : 0
}
