import Digests
import HTTPSemantics

/// One request to a storage, without a signature.
struct StorageRequest: Sendable {
    var method: Method
    var path: String
    var query: [(name: String, value: String)]
    var fields: [(name: String, value: String)]
    var content: [UInt8]
    /// The bytes of the object that the response may contain; `nil` if the response is a document.
    var range: Range<Int64>?
    /// SHA-256 of the content in hexadecimal.
    let digest: String

    init(
        _ method: Method, path: String, query: [(String, String)] = [], fields: [(String, String)] = [],
        content: [UInt8] = [], range: Range<Int64>? = nil
    ) {
        self.method = method
        self.path = path
        self.query = query.map { (name: $0.0, value: $0.1) }
        self.fields = fields.map { (name: $0.0, value: $0.1) }
        self.content = content
        self.range = range
        digest = content.isEmpty ? CanonicalRequest.emptyDigest : content.sha256.hexadecimal
        // Lists of objects to delete require it. Not every storage verifies the signed SHA-256 of an object, and some
        // refuse the cheaper x-amz-checksum-sha256.
        if method == .put || method == .post { self.fields.append(("Content-MD5", MD5.digest(of: content).base64)) }
    }
}

/// A response of a storage.
struct StorageResponse {
    var status: Status
    var fields: Fields
    /// The document; empty if the response has the bytes of an object.
    var content: [UInt8] = []
    /// The number of bytes of the object that were written to the buffer.
    var count = 0
    /// The time of the client, in seconds since 1970.
    var receivedAt: Int64
    /// A text that no error may contain.
    var secret: String?

    var document: StorageDocument? { StorageDocument(content) }

    /// The code of the error document; empty if there is none.
    var code: String { document.flatMap { $0.name == "Error" ? $0["Code"] : nil } ?? "" }

    /// Whether the same request can succeed later.
    var isTemporary: Bool {
        switch status.rawValue {
        case 408, 429, 500, 502, 503, 504: true
        case 400: code == "RequestTimeout"
        default: false
        }
    }

    /// The storage has responded successfully, but not with the expected document.
    var invalid: ObjectError {
        .refused(status: status.rawValue, code: "", message: "the response is not a document of the interface of S3")
    }

    /// The error for a response whose status is not the expected one.
    var error: ObjectError {
        if status == .notFound, code == "NoSuchKey" { return .notFound }
        return error(in: document.flatMap { $0.name == "Error" ? $0 : nil })
    }

    /// - Parameter element: an element with `Code` and `Message`.
    func error(in element: StorageDocument?) -> ObjectError {
        let code = visible(element?["Code"] ?? "", limit: 64)
        if ["SlowDown", "InternalError", "ServiceUnavailable", "OperationAborted"].contains(code) {
            return .unavailable(code)
        }
        let hints = [skewHint(code), regionHint(element), visible(element?["Message"] ?? "", limit: 300)]
        let message = hints.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: ": ")
        return .refused(status: status.rawValue, code: code, message: message)
    }

    /// The difference of the clocks if it can be the reason why a signature was refused.
    private func skewHint(_ code: String) -> String? {
        guard status == .forbidden else { return nil }
        let now = HTTPDate(secondsSinceEpoch: receivedAt)
        let storage = fields["Date"].flatMap { HTTPDate(parsing: $0, relativeTo: now) }
        let difference = storage.map { receivedAt - $0.secondsSinceEpoch }
        if let difference, abs(difference) >= 60 {
            return
                "the clock of this machine is \(abs(difference)) s \(difference > 0 ? "ahead of" : "behind") the clock"
                + " of the storage; synchronize it"
        }
        return code == "RequestTimeTooSkewed" ? "the clocks of this machine and of the storage differ" : nil
    }

    private func regionHint(_ element: StorageDocument?) -> String? {
        if let region = fields["x-amz-bucket-region"] ?? element?["Region"], !region.isEmpty, status != .forbidden {
            return "the bucket is in the region \(visible(region, limit: 64)); set region= and endpoint= accordingly"
        }
        guard status.isRedirection else { return nil }
        let place = element?["Endpoint"] ?? fields["Location"] ?? ""
        return
            "the storage redirects to \(visible(place, limit: 200)), which is not followed; set endpoint= accordingly"
    }

    /// The beginning of a text of the storage on one line; empty if the text contains the secret.
    private func visible(_ text: String, limit: Int) -> String {
        if let secret, text.contains(secret) { return "" }
        let invisible: [Unicode.GeneralCategory] = [.control, .format, .lineSeparator, .paragraphSeparator]
        let scalars = text.unicodeScalars.prefix(limit).map {
            invisible.contains($0.properties.generalCategory) ? " " : $0
        }
        return String(String.UnicodeScalarView(scalars))
    }
}
