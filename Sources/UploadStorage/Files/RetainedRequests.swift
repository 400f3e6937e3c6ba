import SystemCalls

/// The requests of a store whose outcome is unknown, each with a description and the bytes of its content. A running server
/// adds requests; other processes can read and remove them.
package protocol RetainedRequests: Sendable {
    /// The keys of all requests, sorted.
    func keys() throws(StoreError) -> [String]
    /// Opens a request that no other process uses until the value is released; `nil` if there is none with this key.
    /// - Throws: ``StoreError/inUse`` if another process uses the request.
    func request(_ key: String) throws(StoreError) -> RetainedRequest?
    /// The description of a request, which another process may use; `nil` if there is none with this key.
    func description(_ key: String) throws(StoreError) -> [UInt8]?
    /// Gives the content of a request a name in a directory of its application. The caller must remove the name.
    func share(_ key: String, in path: String) throws(StoreError) -> SharedFile
    /// Removes a request, durably.
    func remove(_ key: String) throws(StoreError)
}

/// A request that no other process uses until this value is released.
package struct RetainedRequest: Sendable {
    package let description: [UInt8]
    package let content: any PublishedContent
    /// The length of the content in bytes.
    package let length: Int64

    package init(description: [UInt8], content: any PublishedContent, length: Int64) {
        (self.description, self.content, self.length) = (description, content, length)
    }
}

/// The retained requests of a data directory.
package struct RetainedFiles: RetainedRequests {
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

    package func keys() throws(StoreError) -> [String] {
        guard let directory else { return [] }
        return try translating("list retained requests") { () throws(Errno) in try Self.keys(in: directory).sorted() }
    }

    /// The keys of all requests in the directory for them.
    static func keys(in directory: FileDescriptor) throws(Errno) -> [String] {
        try directory.entryNames().filter { !$0.hasSuffix(descriptionSuffix) }
    }

    package func request(_ key: String) throws(StoreError) -> RetainedRequest? {
        guard let directory, !key.isEmpty, key.utf8.allSatisfy({ $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ".") })
        else { return nil }
        do throws(Errno) {
            let content = try directory.open(at: key, [.readOnly, .noFollow])
            guard try content.tryLock() else { throw .wouldBlock }
            let description = try directory.open(at: key + Self.descriptionSuffix, [.readOnly, .noFollow]).content()
            return RetainedRequest(
                description: description, content: DescriptorContent(descriptor: content),
                length: try content.status().size)
        } catch {
            switch error {
            case .noSuchFile: return nil
            case .wouldBlock: throw .inUse
            default: throw .failure(error, during: "open a retained request")
            }
        }
    }

    package func description(_ key: String) throws(StoreError) -> [UInt8]? { try request(key)?.description }

    package func share(_ key: String, in path: String) throws(StoreError) -> SharedFile {
        guard let directory else { throw .notFound }
        do throws(Errno) {
            // The request can be older than the setting of the route.
            try directory.open(at: key, [.readOnly, .noFollow]).setPermissions(SharedFile.permissions)
        } catch { throw .io(error, during: "make a retained request readable") }
        return try HandoverDirectory(path).share(key, in: directory, durably: true)
    }

    package func remove(_ key: String) throws(StoreError) {
        guard let directory else { return }
        try translating("remove a retained request") { () throws(Errno) in
            try directory.unlink(at: key)
            try directory.unlink(at: key + Self.descriptionSuffix)
            try directory.synchronize()
        }
    }
}
