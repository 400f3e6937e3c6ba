import Foundation

/// A report in JSON (see ``JSONReport``), which is a column of a matrix.
package struct MatrixSubject: Sendable {
    struct CasePart: Decodable {
        let id: String
        let level: String
        let outcome: String
        let expected: String?
        let seen: String?
    }

    private struct Document: Decodable {
        struct Subject: Decodable {
            let url: String?
            let command: String?
            let profile: String?
            let profiles: [String]?
        }

        let version: Int
        let mode: String
        let subject: Subject
        let startedAt: String
        let failure: String?
        let cases: [CasePart]
    }

    let name: String
    let mode: String
    /// The date of the run in ISO 8601.
    let date: String
    let profiles: [String]
    let failure: String?
    let cases: [CasePart]

    /// - Parameters:
    ///   - file: the name of the file that contains the report, for errors.
    ///   - name: the heading of the column; `nil` for the URL or command in the report.
    /// - Throws: ``RunFailure`` if the data is not a report of the server or client mode.
    package init(_ report: Data, from file: String, name: String?) throws {
        let document: Document
        do {
            document = try JSONDecoder().decode(Document.self, from: report)
        } catch {
            throw RunFailure(
                "\(file) is not a JSON report of the server or client mode: \(Self.explanation(of: error))")
        }
        guard document.version == 1 else {
            throw RunFailure("\(file) is a report of version \(document.version), which is not supported")
        }
        self.name = name ?? document.subject.url ?? document.subject.command ?? document.mode
        mode = document.mode
        date = String(document.startedAt.prefix(10))
        profiles = document.subject.profiles ?? document.subject.profile.map { [$0] } ?? []
        failure = document.failure
        cases = document.cases
    }

    private static func explanation(of error: any Error) -> String {
        func member(_ path: [any CodingKey]) -> String {
            path.isEmpty
                ? "the document" : path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
        }
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            return "\(member(context.codingPath + [key])) is missing"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            return "\(member(context.codingPath)) has the wrong type"
        default: return "it is not valid JSON"
        }
    }
}
