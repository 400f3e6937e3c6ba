/// A storage of immutable objects: a bucket of a service with the interface of Amazon S3, or memory.
///
/// All functions block the calling thread, at most for a time that the implementation limits, and at most until their
/// `deadline` (monotonic nanoseconds) if they have one. A key consists of any characters except NUL, and has at most 1024
/// bytes in UTF-8, including the prefix of the storage.
package protocol ObjectStore: Sendable {
    /// Stores an object. Returns after the storage has confirmed that it is durable.
    ///
    /// The request may be repeated, so a key is used for one content only. After an error the object may exist, or begin
    /// to exist later.
    func put(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError)

    /// Stores an object if none has the key; otherwise does nothing. A storage that does not support this condition
    /// replaces the object.
    /// - Returns: false if an object has the key already, which can be one that an attempt of this call has stored. A
    ///   storage that does not support this condition always returns true.
    func create(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) -> Bool

    /// Reads the bytes of `range` into the beginning of `buffer`, which has room for all of them.
    /// - Returns: the number of bytes, which is less than the length of `range` only if the object ends before.
    func get(
        _ key: String, _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64
    ) throws(ObjectError) -> Int

    /// Deletes objects. An object that does not exist is no error. After an error some of the objects may be deleted.
    func delete(_ keys: [String]) throws(ObjectError)

    /// Lists objects in the order of the bytes of their keys.
    /// - Parameters:
    ///   - prefix: the characters with which the keys begin.
    ///   - after: the key after which the list begins, which need not exist; `nil`: the list begins with the first key.
    ///   - limit: the maximum number of objects, from 1 to 1000. The list can only be shorter if no more objects follow.
    func list(prefix: String, after: String?, limit: Int) throws(ObjectError) -> [ObjectListing]

    /// A URL with which everyone can read an object for some time, without credentials. It is a secret. `nil` if the
    /// storage has no such URLs.
    /// - Parameters:
    ///   - time: at most seven days. The URL becomes invalid earlier if the keys with which it is signed do.
    ///   - responseFields: fields that the response has in place of those of the object: `Cache-Control`,
    ///     `Content-Disposition`, `Content-Encoding`, `Content-Language`, `Content-Type` or `Expires`.
    func presignedURL(
        _ key: String, validFor time: Duration, responseFields: [(name: String, value: String)]
    ) throws(ObjectError) -> String?
}

extension ObjectStore {
    package func put(_ key: String, _ content: [UInt8]) throws(ObjectError) { try put(key, content, until: .max) }

    package func get(
        _ key: String, _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer
    ) throws(ObjectError) -> Int { try get(key, range, into: buffer, until: .max) }

    package func presignedURL(
        _ key: String, validFor time: Duration, responseFields: [(name: String, value: String)]
    ) throws(ObjectError) -> String? { nil }
}

/// An object in a list.
package struct ObjectListing: Sendable, Hashable {
    package var key: String
    /// The size of the object in bytes.
    package var size: Int64
    /// The time at which the storage received the object, in seconds since 1970, by the clock of the storage.
    package var lastModified: Int64

    package init(key: String, size: Int64, lastModified: Int64) {
        self.key = key
        self.size = size
        self.lastModified = lastModified
    }
}

/// The reason why an operation of an object storage failed. The texts contain no secrets.
package enum ObjectError: Error, Sendable, Hashable {
    /// No object has the key.
    case notFound
    /// The storage cannot be reached, does not respond in time, or is overloaded. The operation may have had its effect,
    /// or have it later.
    case unavailable(String)
    /// The storage has refused the request. A repetition would be refused as well until an operator changes something.
    /// - Parameters:
    ///   - status: the status of the response; 0 if the request could not be sent.
    ///   - code: the error code of the storage, such as `AccessDenied`; empty if there is none.
    case refused(status: Int, code: String, message: String)

    /// Whether the storage has no bucket of this name.
    package var isMissingBucket: Bool {
        if case .refused(_, "NoSuchBucket", _) = self { true } else { false }
    }
}

extension ObjectError: CustomStringConvertible {
    /// The reason as a sentence without a period, for operators.
    package var description: String {
        switch self {
        case .notFound: "the object does not exist"
        case .unavailable(let reason): "the object storage is unavailable: \(reason)"
        case .refused(0, _, let message): message
        case .refused(let status, let code, let message):
            "the object storage has refused the request with status \(status)\(code.isEmpty ? "" : " \(code)")"
                + (message.isEmpty ? "" : ": \(message)")
        }
    }
}
