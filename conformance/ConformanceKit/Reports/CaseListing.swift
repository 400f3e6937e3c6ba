/// The answer to `list`: which case covers which requirement, and which requirement is covered by none.
package struct CaseListing {
    private let cases: [Case]

    package init() {
        cases = ServerSuite.cases(for: Profile.versions.map(Profile.interop) + [.rfc])
    }

    package var text: String {
        var lines = ["Cases of the server mode", ""]
        let width = cases.map(\.id.count).max() ?? 0
        for next in cases {
            let id = next.id.padding(to: width)
            lines.append("  \(id)  \(next.level.rawValue.padding(to: 6))  \(next.covers.joined(separator: " "))")
            lines.append("  \(String(repeating: " ", count: width))          \(next.requirement)")
        }
        let covered = Set(cases.flatMap(\.covers))
        let open = Requirement.server.filter { !covered.contains($0.id) }
        lines += ["", "Requirements of servers that no case covers", ""]
        for row in open {
            let reason = UncoveredRequirements.reason(for: row.id) ?? "no case yet"
            lines.append("  \(row.id)  \(row.level.padding(to: 6))  \(row.text)")
            lines.append("                  \(reason)")
        }
        lines += [
            "",
            "\(cases.count) cases; \(Requirement.server.count - open.count) of \(Requirement.server.count) requirements covered",
        ]
        return lines.joined(separator: "\n") + "\n"
    }
}

extension String {
    func padding(to width: Int) -> String {
        count < width ? self + String(repeating: " ", count: width - count) : self
    }
}
