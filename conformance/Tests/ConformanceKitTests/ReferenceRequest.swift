import HTTPSemantics
import StructuredFields

/// A request as the reference server parses it.
struct ReferenceRequest {
    let method: String
    let path: String
    let version: ProtocolVersion
    let fields: Fields
    let framing: MessageFraming

    /// The version of the draft that the request states; `nil` if the request states no version, or an unknown version.
    let draft: Int?
    /// The version according to which the request is answered.
    var rules: Int { draft ?? 8 }

    func item(_ name: String) -> BareItem? {
        guard fields.contains(name) else { return nil }
        return (try? Item(parsing: fields.values(name)))?.value
    }

    func integer(_ name: String) -> Int64? {
        guard case .integer(let value)? = item(name), value >= 0 else { return nil }
        return Int64(value)
    }

    /// The completeness that the request states.
    var isComplete: Bool? {
        let name = rules == 3 ? "Upload-Incomplete" : "Upload-Complete"
        guard case .boolean(let value)? = item(name) else { return nil }
        return value != (rules == 3)
    }

    var declaredLength: Int64? {
        switch framing {
        case .none: 0
        case .length(let length): length
        case .chunked: nil
        }
    }
}
