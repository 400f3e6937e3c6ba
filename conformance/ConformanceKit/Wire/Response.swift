import HTTPSemantics
import StructuredFields

/// An interim response.
package struct InterimResponse: Sendable {
    package let status: Int
    package let fields: Fields
    /// The time, in monotonic nanoseconds, at which the last byte was received.
    package let arrivedAt: Int64
}

/// A final response.
package struct Response: Sendable {
    package let status: Int
    package let fields: Fields
    /// The first bytes of the content, after decoding of the transfer coding.
    package let content: [UInt8]
    /// The number of bytes in the content.
    package let contentSize: Int64
    /// The interim responses that preceded this response, in order.
    package let interim: [InterimResponse]
    /// Whether the content ended with the connection, because the response has no length.
    package let isConnectionEnded: Bool
    /// The time, in monotonic nanoseconds, at which the first byte of the request was sent.
    package let requestedAt: Int64
    /// The time, in monotonic nanoseconds, at which the last byte was received.
    package let arrivedAt: Int64

    package var isSuccessful: Bool { (200..<300).contains(status) }
    var isRefusal: Bool { (400..<500).contains(status) }
    package var text: String { String(decoding: content, as: UTF8.self) }
    /// The 104 responses that preceded this response.
    var announcements: [InterimResponse] { interim.filter { $0.status == 104 } }
}

/// A message with a header section.
package protocol FieldSection {
    var fields: Fields { get }
}

/// An interim or final response.
package protocol FieldCarrier: FieldSection {
    var status: Int { get }
}

extension Response: FieldCarrier {}
extension InterimResponse: FieldCarrier {}

extension Response: CustomStringConvertible {
    package var description: String { "\(status) \(fields.map { "\($0.name): \($0.value)" }) \(text.prefix(300))" }
}

extension InterimResponse: CustomStringConvertible {
    package var description: String { "\(status) \(fields.map { "\($0.name): \($0.value)" })" }
}

extension FieldSection {
    /// Returns the value of a field that may occur only once; `nil` if it is absent or repeated.
    package func single(_ name: String) -> String? {
        let values = fields.values(name)
        return values.count == 1 ? values[0] : nil
    }

    package var location: String? { single("Location").flatMap { $0.isEmpty ? nil : $0 } }

    /// Returns the value of a structured Integer field; `nil` if it is absent, invalid or negative.
    func integer(_ name: String) -> Int64? {
        guard case .integer(let value)? = item(name), value >= 0 else { return nil }
        return Int64(value)
    }

    /// Returns the value of a structured Boolean field; `nil` if it is absent or invalid.
    func boolean(_ name: String) -> Bool? {
        if case .boolean(let value)? = item(name) { value } else { nil }
    }

    private func item(_ name: String) -> BareItem? {
        guard fields.contains(name) else { return nil }
        return (try? Item(parsing: fields.values(name)))?.value
    }

    /// The integer members of Upload-Limit; `nil` if it is absent or not a Dictionary.
    package var limits: [String: Int64]? {
        guard fields.contains("Upload-Limit"),
            let dictionary = try? OrderedDictionary(parsing: fields.values("Upload-Limit"))
        else { return nil }
        var result: [String: Int64] = [:]
        for (key, member) in dictionary {
            if case .item(let item) = member, case .integer(let value) = item.value { result[key] = Int64(value) }
        }
        return result
    }

    /// Returns the members of a comma-separated list, in lower case.
    package func list(_ name: String) -> [String] {
        (fields[name] ?? "").split(separator: ",").map { part in
            String(part.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
                .lowercased()
        }
    }
}

extension FieldCarrier {
    /// The status and the fields that describe an upload, as text for reports.
    var summary: String {
        let shown = fields.filter { field in
            let name = field.name.lowercased()
            return name.hasPrefix("upload-") || ["location", "content-type", "content-range"].contains(name)
        }
        return ([String(status)] + shown.map { "\($0.name): \($0.value)" }).joined(separator: ", ")
    }
}
