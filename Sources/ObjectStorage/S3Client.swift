import Digests
import HTTPSemantics
import HTTPTransport
import SystemCalls

/// Objects in a bucket of a service with the interface of Amazon S3.
///
/// The connections are kept and used again. An operation is repeated after errors that can be temporary. It holds at most
/// its own content, the buffer of its caller and about one megabyte in memory.
package final class S3Client: ObjectStore {
    /// The maximum times of an operation.
    package struct Limits: Sendable, Hashable {
        /// The time of the operation with all repetitions, however many bytes it transfers and however slowly they move.
        package var total = Duration.seconds(30)
        /// The time after which no other attempt begins. The clients of the server wait this long for an error, and can
        /// then use another server.
        package var repetition = Duration.seconds(10)
        /// The maximum time in which no byte moves in either direction.
        package var stall = Duration.seconds(10)
        /// The time to make a connection.
        package var connect = Duration.seconds(5)

        package init() {}

        /// The times for a process for which no client waits.
        package static var withLongTimeouts: Limits {
            var limits = Limits()
            (limits.total, limits.stall, limits.connect) = (.seconds(300), .seconds(60), .seconds(20))
            limits.repetition = .seconds(120)
            return limits
        }
    }

    private let uri: ObjectStorageURI
    private let credentials: ObjectCredentials
    private let sender: StorageSender
    private let clock: @Sendable () -> Int64

    /// - Parameters:
    ///   - clock: seconds since 1970, for the signatures.
    ///   - pause: waits for a number of nanoseconds before a repetition.
    package init(
        _ uri: ObjectStorageURI, _ credentials: ObjectCredentials, limits: Limits = Limits(),
        clock: @escaping @Sendable () -> Int64 = SystemClock.realtimeSeconds,
        pause: @escaping @Sendable (Int64) -> Void = SystemClock.pause
    ) {
        self.uri = uri
        self.credentials = credentials
        self.clock = clock
        sender = StorageSender(uri, credentials, limits, clock: clock, pause: pause)
    }

    /// The number of requests that were repeated after a temporary error.
    package var repetitions: Int { sender.repetitions.withLock { $0 } }

    package func put(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) {
        let response = try sender.send(storing(content, under: key), until: deadline)
        guard response.status == .ok else { throw response.error }
    }

    private func storing(_ content: [UInt8], under key: String) throws(ObjectError) -> StorageRequest {
        try StorageRequest(
            .put, path: path(of: key), fields: [("Content-Type", "application/octet-stream")], content: content)
    }

    package func create(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) -> Bool {
        var request = try storing(content, under: key)
        request.fields.append(("If-None-Match", "*"))
        let response = try sender.send(request, until: deadline)
        switch response.status {
        case .ok: return true
        // With the status 409 another request for the key was first.
        case .preconditionFailed, .conflict: return false
        // The storage does not support conditions.
        case .notImplemented:
            try put(key, content, until: deadline)
            return true
        default: throw response.error
        }
    }

    package func get(
        _ key: String, _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64
    ) throws(ObjectError) -> Int {
        precondition(range.lowerBound >= 0 && buffer.count >= range.count)
        guard !range.isEmpty else { return 0 }
        let request = try StorageRequest(
            .get, path: path(of: key), fields: [("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")],
            range: range)
        let response = try sender.send(request, into: buffer, until: deadline)
        switch response.status {
        case .ok, .partialContent: return response.count
        // The range begins at or after the end of the object.
        case .rangeNotSatisfiable: return 0
        default: throw response.error
        }
    }

    package func delete(_ keys: [String]) throws(ObjectError) {
        // XML 1.0 cannot contain most control characters.
        var listed: [String] = []
        for key in keys {
            let path = try path(of: key)
            if keys.count == 1 || key.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value >= 0xFFFE }) {
                let response = try sender.send(StorageRequest(.delete, path: path))
                guard [.ok, .noContent, .notFound].contains(response.status), !response.error.isMissingBucket else {
                    throw response.error
                }
            } else {
                listed.append(uri.prefix + key)
            }
        }
        for start in stride(from: 0, to: listed.count, by: Self.maxDeleted) {
            try deleteListed(listed[start..<min(start + Self.maxDeleted, listed.count)])
        }
    }

    /// The maximum number of objects in one request.
    private static let maxDeleted = 1000

    private func deleteListed(_ keys: ArraySlice<String>) throws(ObjectError) {
        let objects = keys.map { "<Object><Key>\($0.xmlText)</Key></Object>" }.joined()
        let document =
            "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>\(objects)</Delete>"
        let response = try sender.send(
            StorageRequest(
                .post, path: uri.path(of: nil), query: [("delete", "")], fields: [("Content-Type", "application/xml")],
                content: Array(document.utf8)))
        guard response.status == .ok else { throw response.error }
        guard let result = response.document, result.name == "DeleteResult" else { throw response.invalid }
        let errors = result.all("Error").filter { $0["Code"] != "NoSuchKey" }
        if let error = errors.first { throw response.error(in: error) }
    }

    package func list(prefix: String, after: String?, limit: Int) throws(ObjectError) -> [ObjectListing] {
        var listings: [ObjectListing] = []
        var token: String?
        while listings.count < limit {
            var query = [
                ("list-type", "2"), ("encoding-type", "url"), ("max-keys", "\(min(limit - listings.count, 1000))"),
                ("prefix", uri.prefix + prefix),
            ]
            if let token {
                query.append(("continuation-token", token))
            } else if let after {
                query.append(("start-after", uri.prefix + after))
            }
            let response = try sender.send(StorageRequest(.get, path: uri.path(of: nil), query: query))
            guard response.status == .ok else { throw response.error }
            guard let result = response.document, let page = ListingPage(result, prefix: uri.prefix) else {
                throw response.invalid
            }
            listings += page.listings
            guard let next = page.next else { break }
            token = next
        }
        return Array(listings.prefix(limit))
    }

    package func presignedURL(
        _ key: String, validFor time: Duration, responseFields: [(name: String, value: String)] = []
    ) throws(ObjectError) -> String? {
        let query = responseFields.map { (name: "response-" + $0.name.lowercased(), value: $0.value) }
        var request = CanonicalRequest(
            method: .get, path: try path(of: key), query: query, fields: [("host", uri.publicHost)],
            contentDigest: CanonicalRequest.unsignedContent)
        let signature = RequestSignature(try credentials.keys(), region: uri.region, at: clock())
        signature.addQuery(validFor: min(max(time.wholeSeconds, 1), 7 * 86_400), to: &request)
        return uri.publicRoot.dropLast() + request.target
    }

    private func path(of key: String) throws(ObjectError) -> String {
        // libcurl, proxies and services could normalize such paths.
        let segments = key.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let isValid =
            !key.isEmpty && (uri.prefix + key).utf8.count <= 1024 && !key.utf8.contains(0)
            && !segments.contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }
        guard isValid else {
            throw .refused(
                status: 0, code: "", message: "a key of an object is empty, too long or has a part '.' or '..'")
        }
        return uri.path(of: key)
    }
}

/// A response to a request for a list (ListObjectsV2).
private struct ListingPage {
    var listings: [ObjectListing] = []
    /// The token of the next page; `nil` if there is none.
    var next: String?

    /// - Returns: `nil` if the document is not such a response, or an object is not below the prefix.
    init?(_ document: StorageDocument, prefix: String) {
        guard document.name == "ListBucketResult", let isTruncated = document["IsTruncated"] else { return nil }
        let isEncoded = document["EncodingType"] == "url"
        for object in document.all("Contents") {
            guard let text = object["Key"], let size = object["Size"].flatMap({ Int64($0) }),
                let time = object["LastModified"].flatMap({ HTTPDate(parsingInternetDate: $0) })
            else { return nil }
            var key = text
            if isEncoded {
                let bytes = text.utf8.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }.percentDecoded
                guard let decoded = bytes.flatMap({ String(validating: $0, as: UTF8.self) }) else { return nil }
                key = decoded
            }
            guard key.utf8.starts(with: prefix.utf8) else { return nil }
            listings.append(
                ObjectListing(
                    key: String(decoding: key.utf8.dropFirst(prefix.utf8.count), as: UTF8.self), size: size,
                    lastModified: time.secondsSinceEpoch))
        }
        if isTruncated == "true" {
            // Without progress the list would have no end.
            guard let token = document["NextContinuationToken"], !token.isEmpty, !listings.isEmpty else { return nil }
            next = token
        }
    }
}

extension String {
    /// The text as content of an XML element.
    fileprivate var xmlText: String {
        var text = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\r": text += "&#13;"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
