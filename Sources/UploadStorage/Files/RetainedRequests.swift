import SystemCalls

/// The requests in a data directory whose outcome is unknown, each with a description and the bytes of its content. A
/// running server adds requests; other processes can read and remove them.
package struct RetainedRequests: Sendable {
    static let descriptionSuffix = ".json"

    private let directory: FileDescriptor?

    /// - Parameter root: the path of a data directory.
    package init(root: String) throws(StoreError) {
        let names: [String]
        do throws(Errno) {
            let root = try FileDescriptor.open(root, [.readOnly, .directory])
            names = try root.entryNames()
            directory =
                names.contains(DataDirectory.retainedName)
                ? try root.open(at: DataDirectory.retainedName, [.readOnly, .directory, .noFollow]) : nil
        } catch { throw .unusableRoot("\(error)") }
        guard names.contains(DataDirectory.catalogName) else {
            throw .unusableRoot(
                "it is not a data directory of onward, because it contains no \(DataDirectory.catalogName)")
        }
    }

    /// The keys of all requests.
    package func keys() throws(Errno) -> [String] {
        guard let directory else { return [] }
        return try Self.keys(in: directory).sorted()
    }

    /// The keys of all requests in the directory for them.
    static func keys(in directory: FileDescriptor) throws(Errno) -> [String] {
        try directory.entryNames().filter { !$0.hasSuffix(descriptionSuffix) }
    }

    /// A request that no other process uses until this value is released.
    package struct Entry: Sendable {
        package let description: [UInt8]
        package let content: FileDescriptor
    }

    /// Opens a request; `nil` if there is none with this key.
    /// - Throws: `wouldBlock` if another process uses the request.
    package func entry(_ key: String) throws(Errno) -> Entry? {
        guard let directory, !key.isEmpty, key.utf8.allSatisfy({ $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ".") })
        else { return nil }
        do throws(Errno) {
            let content = try directory.open(at: key, [.readOnly, .noFollow])
            guard try content.tryLock() else { throw .wouldBlock }
            let description = try directory.open(at: key + Self.descriptionSuffix, [.readOnly, .noFollow]).content()
            return Entry(description: description, content: content)
        } catch {
            if error == .noSuchFile { return nil }
            throw error
        }
    }

    /// Gives the content of a request a name in a directory of its application. The caller must remove the name.
    package func share(_ key: String, in path: String) throws(StoreError) -> SharedFile {
        guard let directory else { throw .notFound }
        do throws(Errno) {
            // The request can be older than the setting of the route.
            try directory.open(at: key, [.readOnly, .noFollow]).setPermissions(SharedFile.permissions)
        } catch { throw .io(error, during: "make a retained request readable") }
        return try HandoverDirectory(path).share(key, in: directory, durably: true)
    }

    /// Removes a request, durably.
    package func remove(_ key: String) throws(Errno) {
        guard let directory else { return }
        try directory.unlink(at: key)
        try directory.unlink(at: key + Self.descriptionSuffix)
        try directory.synchronize()
    }
}
