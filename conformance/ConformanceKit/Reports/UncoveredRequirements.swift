/// Why no case covers a requirement.
enum UncoveredRequirements {
    private static let reasons: [(String, [String])] = [
        ("HTTP/2: this harness speaks HTTP/1.1", ["CON-05", "H11-19", "H11-20"]),
        ("needs several server processes over one storage", ["CON-06"]),
        (
            "needs a target whose processing can be slowed down or made to fail from outside",
            ["CRE-22", "OFF-14", "CMP-03", "CON-09"]
        ),
        ("needs a server that moves its uploads", ["APP-26"]),
        ("needs a change of configuration while it runs", ["LIM-10", "LIM-11"]),
        (
            "what happens to storage and memory cannot be seen from outside",
            ["CAN-02", "H11-24", "OFF-15"]
        ),
        ("a matter of the server's log", ["SEC-15"]),
        ("a client cannot keep a 104 from being written without ending the connection", ["INT-06"]),
        ("needs to know the quota, and the bound of open uploads, of a principal", ["SEC-06", "SEC-08"]),
        ("an idle time-out takes longer than a run should", ["SEC-07"]),
        ("needs a scanner behind the target", ["SEC-12"]),
        ("needs a cache in front of the server", ["CCH-02"]),
        ("parses the corpus of another project: a test of a parser, not of a server", ["STF-12"]),
        ("what a client keeps in memory cannot be seen from outside", ["CLI-25"]),
        ("needs a source that is still being written, and the command is given a file", ["CLI-29"]),
        ("needs a source whose end is not known before, and the command is given a file", ["CLI-27"]),
    ]

    static func reason(for id: String) -> String? { reasons.first { $0.1.contains(id) }?.0 }
}
