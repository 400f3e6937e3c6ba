import Foundation

/// A run as its report in JSON reports of it (see ``JSONReport``).
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
    /// The day, as in ISO 8601.
    let date: String
    let profiles: [String]
    let failure: String?
    let cases: [CasePart]

    /// - Parameter name: the head of its column; nil for what the report calls it.
    /// - Throws: ``RunFailure`` where it is no report of a kind that can stand in a matrix.
    package init(_ report: Data, name: String?) throws {
        let document: Document
        do {
            document = try JSONDecoder().decode(Document.self, from: report)
        } catch {
            throw RunFailure("\(name ?? "a file") is no report of the server or client mode in JSON: \(error)")
        }
        guard document.version == 1 else { throw RunFailure("version \(document.version) of reports is not known") }
        self.name = name ?? document.subject.url ?? document.subject.command ?? document.mode
        mode = document.mode
        date = String(document.startedAt.prefix(10))
        profiles = document.subject.profiles ?? document.subject.profile.map { [$0] } ?? []
        failure = document.failure
        cases = document.cases
    }
}
