/// The headings of the groups of cases. The group of a case is the part of its ID before the slash.
enum SectionTitle {
    static func title(of group: String) -> String {
        if group.hasPrefix("v"), let version = Int(group.dropFirst()) { return "Interop \(version)" }
        return titles[group] ?? group
    }

    private static let titles = [
        "4.1": "4.1  Fields of the draft", "4.1.1": "4.1.1  Upload-Offset", "4.1.2": "4.1.2  Upload-Complete",
        "4.1.3": "4.1.3  Upload-Length", "4.1.4": "4.1.4  Upload-Limit", "4.2": "4.2  Creation",
        "4.2.1": "4.2.1  Creation",
        "4.3": "4.3  Offset retrieval", "4.4": "4.4  Append", "4.4.1": "4.4.1  Append",
        "4.5": "4.5  Cancellation",
        "4.6": "4.6  Concurrency", "5": "5  Interim responses and expectations", "7": "7  Problem types",
        "8": "8  Content codings",
        "10": "10  Integrity digests", "13": "13  Security", "B": "B  Versions of the draft",
        "9110": "RFC 9110  Semantics", "9112": "RFC 9112  HTTP/1.1", "9457": "RFC 9457  Problem details",
        "9651": "RFC 9651  Structured fields", "14": "RFC 9110 14  Range downloads",
        "restart": "Restart  Durability", "cors": "CORS  Browsers",
    ]
}
