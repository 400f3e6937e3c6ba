import SystemCalls

extension DownloadDestination {
    /// Writes a file whose content was received in one response. The file gets its name when it is complete, and
    /// replaces a file that had the name before.
    ///
    /// Nothing is synchronized: a caller that writes many files synchronizes the file system once, before it reports
    /// success.
    /// - Parameters:
    ///   - directory: the directory of the file. If the name is a symbolic link, the link is replaced.
    ///   - path: the path of the directory.
    ///   - modified: the modification time in seconds since 1970; `nil`: now.
    package static func write(
        _ content: [UInt8], as name: FilePath, in directory: FileDescriptor, at path: FilePath, modified: Int64?
    ) throws(Errno) {
        guard name.isEntryName else { throw .invalidArgument }
        let location = PartialFileLocation(directory: directory, path: path, destinationName: name)
        // A file without a name needs neither a temporary name nor a lock, because no other process can find it. But it
        // cannot replace a file.
        if let file = try? directory.open(at: ".", [.writeOnly, .nameless], mode: 0o666) {
            try file.write(content, at: 0)
            if let modified { try file.setModified(FileStatus.Time(seconds: modified, nanoseconds: 0)) }
            if (try? file.link(to: directory, as: name)) != nil { return }
        }
        let file = try PartialFile.create(in: location)
        defer { file.close() }
        do throws(Errno) {
            try content.withUnsafeBufferPointer { (bytes) throws(Errno) in
                try file.write(UnsafeRawBufferPointer(bytes))
            }
            try file.publishUnsynchronized(modified: modified)
        } catch {
            if file.isNamed { file.remove() }
            throw error
        }
    }
}
