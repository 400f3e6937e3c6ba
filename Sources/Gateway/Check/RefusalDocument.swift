import Foundation
import HTTPSemantics

/// The problem document of a file that a check has refused.
struct RefusalDocument {
    /// The status of a refusal without a problem document.
    static let status: Status = 422
    private static let code = "content-refused"
    private static let maxSize = 64 << 10
    private static let maxDetail = 1000
    /// The maximum depth of a document. To convert a deeper one, Foundation could need more stack than a thread of a
    /// connection has.
    private static let maxDepth = 32

    let response: Response

    /// Whether a check can refuse a file with this status. After 401, 407, 408, 425 and 429 a client can repeat its
    /// request.
    static func canRefuse(_ status: Status) -> Bool {
        status.isClientError && ![401, 407, 408, 425, 429].contains(status.rawValue)
    }

    /// A problem document of the check, with all its members.
    /// - Parameters:
    ///   - json: a JSON object; otherwise the result is `nil`.
    ///   - status: the status of the response; `nil`: the member `status`, or 422.
    init?(json: [UInt8], status: Status? = nil) {
        guard json.count <= Self.maxSize, Self.depth(of: json) <= Self.maxDepth,
            var members = try? JSONSerialization.jsonObject(with: Data(json)) as? [String: Any]
        else { return nil }
        let stated = (members["status"] as? Int).flatMap { (100...599).contains($0) ? Status(rawValue: $0) : nil }
        let status = status ?? stated.flatMap { Self.canRefuse($0) ? $0 : nil } ?? Self.status
        members["status"] = status.rawValue
        // Log and metrics contain the code.
        if !(members["code"] is String) { members["code"] = Self.code }
        guard
            let content = try? JSONSerialization.data(
                withJSONObject: members, options: [.sortedKeys, .withoutEscapingSlashes])
        else { return nil }
        response = Response(
            status: status, fields: ["Content-Type": ProblemDetails.mediaType], content: Array(content))
    }

    /// The depth of nested arrays and objects.
    static func depth(of json: [UInt8]) -> Int {
        var (depth, maximum) = (0, 0)
        var (isInString, isEscaped) = (false, false)
        for byte in json {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                maximum = max(maximum, depth)
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
        return maximum
    }

    /// A problem document with the text of the check as its detail.
    init(text: [UInt8]) {
        let visible = String(decoding: text.prefix(Self.maxDetail * 4), as: UTF8.self).unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control ? " " : Character(scalar)
        }
        let detail = String(visible).split(separator: " ").joined(separator: " ")
        response = Response(
            ProblemDetails(
                status: Self.status,
                detail: detail.isEmpty ? "The check has refused the file." : String(detail.prefix(Self.maxDetail)),
                code: Self.code))
    }
}
