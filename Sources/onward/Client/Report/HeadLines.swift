import HTTPSemantics
import ResumableTransfer

/// The head of a message as lines for people.
enum HeadLines {
    static func of(_ record: TransferRecord) -> [String] {
        let sign: String
        let first: String
        switch record.message {
        case .request(let method, let uri):
            sign = ">"
            first = "\(method.rawValue) \(uri)"
        case .response(let status, let version):
            sign = "<"
            let name = version.hasPrefix("HTTP") ? version : "HTTP/" + version
            first = "\(name) \(status.rawValue) \(status.reasonPhrase)"
        }
        return ([first] + record.fields.map { "\($0.name): \($0.value)" }).map {
            sign + " " + DisplayText.printable($0)
        }
    }
}
