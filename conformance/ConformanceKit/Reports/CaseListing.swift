/// The output of `list`: all cases with the requirements that they cover, and the requirements that no case covers.
package struct CaseListing {
    package init() {}

    package var text: String {
        let cases = ServerSuite.cases(for: Profile.versions.map(Profile.interop) + [.rfc])
        return Self.lines("server", cases.map(\.info), Requirement.server).joined(separator: "\n") + "\n\n"
            + Self.lines("client", ClientSuite.cases, Requirement.client).joined(separator: "\n") + "\n"
    }

    private static func lines(_ role: String, _ infos: [CaseInfo], _ requirements: [Requirement]) -> [String] {
        var lines = ["Cases of the \(role) mode", ""]
        let width = infos.map(\.id.count).max() ?? 0
        for next in infos {
            let id = next.id.padding(to: width)
            lines.append("  \(id)  \(next.level.rawValue.padding(to: 6))  \(next.covers.joined(separator: " "))")
            lines.append("  \(String(repeating: " ", count: width))          \(next.requirement)")
        }
        let covered = Set(infos.flatMap(\.covers))
        let open = requirements.filter { !covered.contains($0.id) }
        lines += ["", "Requirements of \(role)s that no case covers", ""]
        for row in open {
            let reason = UncoveredRequirements.reason(for: row.id) ?? "no case yet"
            lines.append("  \(row.id)  \(row.level.padding(to: 6))  \(row.text)")
            lines.append("                  \(reason)")
        }
        let count = requirements.count
        lines += ["", "\(infos.count) cases; \(count - open.count) of \(count) requirements covered"]
        return lines
    }
}

extension String {
    func padding(to width: Int) -> String {
        count < width ? self + String(repeating: " ", count: width - count) : self
    }
}
