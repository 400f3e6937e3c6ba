import FoundationEssentials
import HTTPSemantics

/// An interim response, with the moment at which its last byte was read.
struct InterimResponse: Sendable, CustomStringConvertible {
    let status: Int
    let fields: Fields
    let arrivedAt: ContinuousClock.Instant

    var description: String { "\(status) \(fields.map { "\($0.name): \($0.value)" })" }
}

/// A final response as it came over the wire.
struct Response: Sendable, CustomStringConvertible {
    let version: String
    let status: Int
    let reason: String
    /// Field lines in their order.
    let fields: Fields
    let body: [UInt8]
    /// Interim responses that preceded it, in their order.
    let interim: [InterimResponse]
    let arrivedAt: ContinuousClock.Instant

    var text: String { String(decoding: body, as: UTF8.self) }
    var description: String { "\(version) \(status) \(fields.map { "\($0.name): \($0.value)" }) \(text.prefix(300))" }
    var isSuccessful: Bool { (200..<300).contains(status) }
}

// MARK: - The upload protocol's fields, read strictly

/// A response or interim response with a header section.
protocol FieldCarrier {
    var fields: Fields { get }
}

extension Response: FieldCarrier {}
extension InterimResponse: FieldCarrier {}

extension FieldCarrier {
    /// The value of a field that must stand on one line at most; `nil` when it is absent or repeated.
    func value(_ name: String) -> String? {
        let values = fields.values(name)
        return values.count == 1 ? values[0] : nil
    }

    var location: String? { value("Location") }
    var offset: Int64? { value("Upload-Offset").flatMap(Self.integer) }
    var length: Int64? { value("Upload-Length").flatMap(Self.integer) }
    var echoedVersion: Int64? { value("Upload-Draft-Interop-Version").flatMap(Self.integer) }
    /// `Upload-Complete`.
    var complete: Bool? { value("Upload-Complete").flatMap(Self.boolean) }
    /// `Upload-Incomplete` of interop version 3.
    var incomplete: Bool? { value("Upload-Incomplete").flatMap(Self.boolean) }

    /// `Upload-Limit`; `nil` where it is absent, empty, or anything but a Dictionary of canonical Integers.
    var limits: [String: Int64]? {
        guard let text = fields["Upload-Limit"], !text.isEmpty else { return nil }
        var result: [String: Int64] = [:]
        for member in text.split(separator: ",", omittingEmptySubsequences: false) {
            let parts = member.trimmingPrefix(" ").split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, let value = Self.integer(String(parts[1])), !parts[0].isEmpty,
                parts[0].allSatisfy({ $0 == "-" || ("a"..."z").contains($0) }), result[String(parts[0])] == nil
            else { return nil }
            result[String(parts[0])] = value
        }
        return result
    }

    /// The members of a comma-separated list, in lower case.
    func list(_ name: String) -> [String] {
        (fields[name] ?? "").split(separator: ",").map { $0.trimmingPrefix(" ").lowercased() }
    }

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

/// The members of a problem document that the tests look at.
struct Problem: Decodable, Sendable {
    let type: String?
    let title: String?
    let status: Int?
    let code: String?
    let detail: String?
    let expectedOffset: Int64?
    let providedOffset: Int64?
    let reasons: [String]?

    enum CodingKeys: String, CodingKey {
        case type, title, status, code, detail, reasons
        case expectedOffset = "expected-offset"
        case providedOffset = "provided-offset"
    }
}

extension Response {
    /// The problem document; `nil` where the response is none or its JSON is invalid.
    var problem: Problem? {
        guard value("Content-Type") == "application/problem+json" else { return nil }
        return try? JSONDecoder().decode(Problem.self, from: Data(body))
    }
}
