/// Cases that report violations of the rules for every exchange, at the end of a run.
enum EntireRunCases {
    static let all: [Case] = [
        verifying(
            .wellFormed, .must, "RFC 9112", "Every response is well-formed HTTP/1.1.",
            covers: "INT-03 SEC-18"),
        verifying(
            .interimContent, .must, "RFC 9110 15.2", "No interim response has Content-Length or Transfer-Encoding.",
            covers: "INT-04"),
        verifying(
            .canonicalFields, .must, "4.1", "Every field of the draft in a response is a canonical structured field.",
            covers: "STF-08"),
        verifying(
            .limitValues, .must, "4.1.4",
            "Every Upload-Limit is a Dictionary that is not empty and whose known members are Integers.",
            covers: "LIM-14 LIM-20 OFF-05"),
        verifying(
            .versionEcho, .must, "appendix B", "Every 104 has the interop version of the request.",
            covers: "VER-03", ranks: 3...8),
        verifying(
            .sameLocation, .must, "4.2.2", "All values of Location in the responses to one creation are identical.",
            covers: "CRE-11"),
        verifying(
            .appendInterimLocation, .must, "4.4.2", "No 104 to an append has Location.", covers: "APP-11 VER-18"),
        verifying(
            .offsetDecrease, .must, "4.1.1", "No reported offset of an upload is lower than a previous one.",
            covers: "OFF-09 OFF-10 INT-08"),
        verifying(
            .redirection, .should, "4.3.2", "No retrieval or cancellation is redirected with 301 or 302.",
            covers: "OFF-13 CAN-04 RED-01"),
        verifying(
            .problemStatus, .must, "RFC 9457 3",
            "Problem documents have the type application/problem+json and the status of the response.",
            covers: "PRB-03"),
        verifying(
            .problemInternals, .must, "13", "No error response contains file paths or stack traces.", covers: "PRB-05"),
    ]

    private static func verifying(
        _ rule: Observations.Rule, _ level: Level, _ section: String, _ requirement: String, covers: String,
        ranks: ClosedRange<Int> = Profile.allRanks
    ) -> Case {
        Case(rule.rawValue, level, section, requirement, covers: covers, ranks: ranks) { t in
            guard t.observations.responses > 0 else { throw t.skip("there were no exchanges") }
            let violations = t.observations.violations(of: rule)
            try t.expect(
                violations.isEmpty, "no violation of this requirement in any case",
                violations.prefix(3).joined(separator: "; ")
                    + (violations.count > 3 ? "; and \(violations.count - 3) more" : ""))
        }
    }
}
