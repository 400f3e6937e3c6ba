import Foundation
import FoundationNetworking
import HTTPSemantics

extension HTTPURLResponse {
    /// A response of these fields; lines of the same name are joined.
    convenience init?(status: Status, fields: Fields, url: URL?) {
        guard let url else { return nil }
        var lines: [String: String] = [:]
        var names: [String: String] = [:]
        for field in fields {
            let name = names[field.name.lowercased(), default: field.name]
            names[field.name.lowercased()] = name
            let value = field.value.trimmingCharacters(in: .whitespaces)
            lines[name] = lines[name].map { "\($0), \(value)" } ?? value
        }
        self.init(url: url, statusCode: Int(status.rawValue), httpVersion: "HTTP/1.1", headerFields: lines)
    }
}
