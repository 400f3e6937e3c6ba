import Foundation

/// A report in JSON (see ``JSONReport``), as a column of a matrix.
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

    /// - Parameter name: the heading of the column; nil for the URL or command in the report.
    /// - Throws: ``RunFailure`` if the data is not a report of the server or client mode.
    package init(_ report: Data, name: String?) throws {
        let document: Document
        do {
            document = try JSONDecoder().decode(Document.self, from: report)
        } catch {
            throw RunFailure("\(name ?? "a file") is not a JSON report of the server or client mode: \(error)")
        }
        guard document.version == 1 else {
            throw RunFailure("reports of version \(document.version) are not supported")
        }
        self.name = name ?? document.subject.url ?? document.subject.command ?? document.mode
        mode = document.mode
        date = String(document.startedAt.prefix(10))
        profiles = document.subject.profiles ?? document.subject.profile.map { [$0] } ?? []
        failure = document.failure
        cases = document.cases
    }
}
