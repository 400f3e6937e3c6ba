import ObjectStorage

/// An object storage that forwards to objects in memory what it does not do itself.
protocol ForwardingObjectStore: ObjectStore {
    var objects: MemoryObjectStore { get }
}

extension ForwardingObjectStore {
    func put(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) {
        try objects.put(key, content, until: deadline)
    }

    func create(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) -> Bool {
        try objects.create(key, content, until: deadline)
    }

    func get(
        _ key: String, _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64
    ) throws(ObjectError) -> Int { try objects.get(key, range, into: buffer, until: deadline) }

    func delete(_ keys: [String]) throws(ObjectError) { try objects.delete(keys) }

    func list(prefix: String, after: String?, limit: Int) throws(ObjectError) -> [ObjectListing] {
        try objects.list(prefix: prefix, after: after, limit: limit)
    }
}
