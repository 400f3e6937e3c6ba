import Foundation

/// A problem document (RFC 9457).
struct ProblemDocument {
    let type: String?
    let status: Int?
    private let members: [String: Any]

    /// Parses a JSON object; `nil` if the bytes are not a JSON object.
    init?(_ bytes: [UInt8]) {
        guard let object = try? JSONSerialization.jsonObject(with: Data(bytes)),
            let members = object as? [String: Any]
        else { return nil }
        self.members = members
        type = members["type"] as? String
        status = members["status"] as? Int
    }

    /// Returns the value of an integer member.
    func integer(_ name: String) -> Int64? { (members[name] as? NSNumber)?.int64Value }

    static let registry = "https://iana.org/assignments/http-problem-types#"
}
