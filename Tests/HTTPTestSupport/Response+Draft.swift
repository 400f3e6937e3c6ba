import ConformanceKit
import FoundationEssentials

// MARK: - The fields of the draft, parsed strictly

extension FieldSection {
    /// The value of a field that may occur once; `nil` if it is absent or repeated.
    package func value(_ name: String) -> String? {
        single(name)
    }

    package var offset: Int64? { value("Upload-Offset").flatMap(Self.integer) }
    package var length: Int64? { value("Upload-Length").flatMap(Self.integer) }
    package var echoedVersion: Int64? { value("Upload-Draft-Interop-Version").flatMap(Self.integer) }
    /// The value of `Upload-Complete`.
    package var complete: Bool? { value("Upload-Complete").flatMap(Self.boolean) }
    /// The value of `Upload-Incomplete` of interop version 3.
    package var incomplete: Bool? { value("Upload-Incomplete").flatMap(Self.boolean) }

    /// A non-negative Integer in its canonical form (RFC 9651 section 4.1.4), at most 15 digits.
    private static func integer(_ text: String) -> Int64? {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            text == "0" || !text.hasPrefix("0")
        else { return nil }
        return Int64(text)
    }

    private static func boolean(_ text: String) -> Bool? { text == "?1" ? true : text == "?0" ? false : nil }
}

// MARK: - Problem documents

/// The members of a problem document that the tests use.
package struct Problem: Decodable, Sendable {
    package let type: String?
    package let title: String?
    package let status: Int?
    package let code: String?
    package let detail: String?
    package let reasons: [String]?
}

extension Response {
    /// Whether another server still holds the upload, so that a client repeats the request.
    package func isOfUploadInUse(to method: String) -> Bool {
        // A response to HEAD has no content with the code.
        let isInUse = method == "HEAD" ? value("Retry-After") == "1" : problem?.code == "upload-in-use"
        return status == 503 && isInUse
    }

    /// The problem document; `nil` if the response has none or its JSON is invalid.
    package var problem: Problem? {
        guard value("Content-Type") == "application/problem+json" else { return nil }
        return try? JSONDecoder().decode(Problem.self, from: Data(content))
    }
}

// MARK: - Listings

/// The members of a listing's entry that the tests use.
package struct ListingEntry: Decodable, Sendable {
    package let name: String
    package let url: String
}

extension Response {
    /// The entries of a listing in JSON.
    package func listing() throws -> [ListingEntry] {
        try JSONDecoder().decode([ListingEntry].self, from: Data(content))
    }

    /// The URL of the next page of a listing, from its `Link` field.
    package var nextPage: String? {
        guard let link = value("Link"), link.hasPrefix("<"), link.hasSuffix(">; rel=\"next\"") else { return nil }
        return String(link.dropFirst().prefix { $0 != ">" })
    }
}
