import ConformanceKit
import Testing

/// A version of the draft, as in `Upload-Draft-Interop-Version`.
package enum Interop: Int, CaseIterable, Sendable, CustomTestStringConvertible {
    case v3 = 3
    case v4, v5, v6, v7, v8

    package var testDescription: String { "interop \(rawValue)" }
}

// MARK: - The requests of the draft

extension Request {
    /// A creation (draft section 4.2).
    /// - Parameters:
    ///   - version: the version in the request; `nil` for none.
    ///   - complete: whether the content is the complete representation; `nil` omits the field.
    ///   - length: the value of `Upload-Length`.
    package static func creation(
        _ version: Interop? = .v8, _ method: String = "PUT", _ target: String = "/files/file.bin", complete: Bool?,
        length: Int? = nil, _ content: Content
    ) -> Request {
        var request = Request(method, target, versionField(version), content)
        if let complete { request.fields.append(completeness(version, complete)) }
        if let length { request.fields.append(("Upload-Length", "\(length)")) }
        return request
    }

    /// An append (draft section 4.4), with the media type that its version requires.
    package static func append(
        _ version: Interop? = .v8, _ location: String, at offset: Int, complete: Bool?, length: Int? = nil,
        _ content: Content
    ) -> Request {
        var request = Request("PATCH", location, versionField(version), content)
        if (version?.rawValue ?? 8) >= 6 { request.fields.append(("Content-Type", "application/partial-upload")) }
        request.fields.append(("Upload-Offset", "\(offset)"))
        if let complete { request.fields.append(completeness(version, complete)) }
        if let length { request.fields.append(("Upload-Length", "\(length)")) }
        return request
    }

    /// An offset retrieval (draft section 4.3).
    package static func retrieval(_ version: Interop? = .v8, _ location: String, _ method: String = "HEAD") -> Request {
        Request(method, location, versionField(version))
    }

    /// A cancellation (draft section 4.5).
    package static func cancellation(_ version: Interop? = .v8, _ location: String) -> Request {
        Request("DELETE", location, versionField(version))
    }

    package static func get(_ target: String) -> Request { Request("GET", target) }

    /// Requests a listing in JSON.
    package static func listing(_ target: String) -> Request { get(target).with("Accept", "application/json") }

    package static func versionField(_ version: Interop?) -> [(String, String)] {
        version.map { [("Upload-Draft-Interop-Version", "\($0.rawValue)")] } ?? []
    }

    /// The completeness field of a version; the field of version 3 is the inverse.
    package static func completeness(_ version: Interop?, _ isComplete: Bool) -> (String, String) {
        version == .v3 ? ("Upload-Incomplete", isComplete ? "?0" : "?1") : ("Upload-Complete", isComplete ? "?1" : "?0")
    }
}

extension FieldSection {
    /// Whether the response reports completeness in the field of its version, and in no other field.
    package func states(complete: Bool, in version: Interop?) -> Bool {
        version == .v3
            ? incomplete == !complete && !fields.contains("Upload-Complete")
            : self.complete == complete && !fields.contains("Upload-Incomplete")
    }
}

extension Interop: Comparable {
    package static func < (left: Interop, right: Interop) -> Bool { left.rawValue < right.rawValue }
}

extension Request {
    /// The request with a token.
    package func with(token: String?) -> Request {
        guard let token else { return self }
        return with("Authorization", "Bearer " + token)
    }
}

/// The content of a token file: each principal has other rights.
package let sampleTokens = """
    anna token-of-anna-0001
    ben token-of-ben-00001
    reader token-of-reader-1 read
    maker token-of-maker-01 create
    box token-of-box-0001 read,create prefix=/files/box/
    """
