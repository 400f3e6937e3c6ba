/// The answer to `list`: which question covers which requirement, and which requirement is covered by none.
package struct CaseListing {
    package init() {}

    package var text: String {
        let cases = ServerSuite.cases(for: Profile.versions.map(Profile.interop) + [.rfc])
        return Self.lines("server", cases.map(\.question), Requirement.server).joined(separator: "\n") + "\n\n"
            + Self.lines("client", ClientSuite.questions, Requirement.client).joined(separator: "\n") + "\n"
    }

    private static func lines(_ role: String, _ questions: [Question], _ requirements: [Requirement]) -> [String] {
        var lines = ["Cases of the \(role) mode", ""]
        let width = questions.map(\.id.count).max() ?? 0
        for next in questions {
            let id = next.id.padding(to: width)
            lines.append("  \(id)  \(next.level.rawValue.padding(to: 6))  \(next.covers.joined(separator: " "))")
            lines.append("  \(String(repeating: " ", count: width))          \(next.requirement)")
        }
        let covered = Set(questions.flatMap(\.covers))
        let open = requirements.filter { !covered.contains($0.id) }
        lines += ["", "Requirements of \(role)s that no case covers", ""]
        for row in open {
            let reason = UncoveredRequirements.reason(for: row.id) ?? "no case yet"
            lines.append("  \(row.id)  \(row.level.padding(to: 6))  \(row.text)")
            lines.append("                  \(reason)")
        }
        let count = requirements.count
        lines += ["", "\(questions.count) cases; \(count - open.count) of \(count) requirements covered"]
        return lines
    }
}

extension String {
    func padding(to width: Int) -> String {
        count < width ? self + String(repeating: " ", count: width - count) : self
    }
}
