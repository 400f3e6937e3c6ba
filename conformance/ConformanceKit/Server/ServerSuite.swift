/// The cases of the server mode, in the order in which they run.
package enum ServerSuite {
    /// The groups of IDs in the order of the run. Cases of a group depend only on previous groups.
    static let sections = [
        "4.2", "4.3", "4.4", "4.1.2", "4.1.3", "4.1.4", "4.5", "4.6", "5", "7", "8", "10", "13", "B", "9651", "9112",
        "14", "cors", "restart",
    ]

    /// - Parameter profiles: the profiles that the subject supports, each of which has additional cases.
    package static func cases(for profiles: [Profile]) -> [Case] {
        let groups: [[Case]] = [
            CreationCases.basic, InterimCases.announcement, AppendCases.basic, InterimCases.versions, CreationCases.all,
            RetrievalCases.all,
            AppendCases.all, CompletionCases.all, CancellationCases.all, LengthCases.all, LimitCases.all,
            InterimCases.continuation, ConcurrencyCases.all, FieldSyntaxCases.all, ProblemCases.all, DigestCases.all,
            SecurityCases.all, PrincipalCases.all, FramingCases.heads, FramingCases.chunks, ConnectionCases.all,
            DownloadCases.ranges,
            DownloadCases.conditions, RestartCases.all,
            EntireRunCases.all,
        ]
        let all = groups.flatMap { $0 }
        // The cases on which others depend come first, then all others by section.
        let first = all.prefix(groups.prefix(3).reduce(0) { $0 + $1.count })
        let remaining = all.dropFirst(first.count).dropLast(EntireRunCases.all.count)
        let versions = profiles.sorted { $0.rank < $1.rank }.flatMap { profile in
            VersionCases.cases(for: profile, isBase: profile.rank == profiles.map(\.rank).max())
        }
        return first + sections.flatMap { section in remaining.filter { $0.group == section } } + versions
            + EntireRunCases.all
    }
}
