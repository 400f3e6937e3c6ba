/// The reasons why no case covers certain requirements.
enum UncoveredRequirements {
    private static let reasons: [(String, [String])] = [
        ("the requirement is about HTTP/2, and this harness uses HTTP/1.1", ["CON-05", "H11-19", "H11-20"]),
        ("needs several server processes that share a storage", ["CON-06"]),
        (
            "needs a target whose processing a test can delay or make fail",
            ["CRE-22", "OFF-14", "CMP-03", "CON-09"]
        ),
        ("needs a server that redirects requests for an upload", ["APP-26"]),
        ("needs a change of the server's configuration during an upload", ["LIM-10", "LIM-11"]),
        (
            "a client cannot observe the storage and the memory of a server",
            ["CAN-02", "H11-24", "OFF-15"]
        ),
        ("needs access to the server's log", ["SEC-15"]),
        ("a client cannot make the writing of a 104 fail without ending the connection", ["INT-06"]),
        ("needs the quota and the maximum number of open uploads of a principal", ["SEC-06", "SEC-08"]),
        ("an idle timeout is longer than a run should be", ["SEC-07"]),
        ("needs a target that scans content", ["SEC-12"]),
        ("needs a cache in front of the server", ["CCH-02"]),
        ("is a test suite of another project, which tests a parser and not a server", ["STF-12"]),
        ("a server cannot observe the memory of a client", ["CLI-25"]),
        ("needs a source that is still being written, but the command gets a complete file", ["CLI-29"]),
        ("needs a source of unknown length, but the command gets a file", ["CLI-27"]),
    ]

    static func reason(for id: String) -> String? { reasons.first { $0.1.contains(id) }?.0 }
}
