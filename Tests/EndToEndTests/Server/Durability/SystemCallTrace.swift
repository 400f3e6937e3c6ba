import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// The system calls of a server, in order, as recorded by strace(1).
struct SystemCallTrace {
    struct Call {
        let name: String
        /// The line with arguments and result; each descriptor is followed by its path.
        let text: String
        /// The lines of the trace at which the call began and returned.
        let begin: Int
        let end: Int
    }

    let calls: [Call]

    /// Whether this process may trace other processes.
    static let isPossible: Bool = {
        guard let probe = try? ChildProcess("/usr/bin/strace", ["-o", "/dev/null", "true"]) else { return false }
        return (try? probe.awaitEnding(within: .seconds(60))) == .exited(0)
    }()

    static let options = [
        "-f", "-y", "-qq", "-s", "400", "-e",
        "trace=pwrite64,write,fdatasync,fsync,sync_file_range,mkdirat,renameat2,linkat,unlinkat,sendto,sendmsg,writev",
    ]

    init(_ text: String) {
        var calls: [Call] = []
        var open: [Substring: (name: String, text: String, begin: Int)] = [:]
        for (number, line) in text.split(separator: "\n").enumerated() {
            let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            guard parts.count == 2 else { continue }
            // strace pads short process numbers.
            let (process, call) = (parts[0], parts[1].drop { $0 == " " })
            if call.hasPrefix("<... ") {
                guard let begun = open.removeValue(forKey: process) else { continue }
                let result = call.firstRange(of: "resumed>").map { call[$0.upperBound...] } ?? call
                calls.append(Call(name: begun.name, text: begun.text + result, begin: begun.begin, end: number))
            } else if let bracket = call.firstIndex(of: "("), call.first?.isLetter == true {
                let name = String(call[..<bracket])
                if let range = call.firstRange(of: " <unfinished ...>") {
                    open[process] = (name, String(call[..<range.lowerBound]), number)
                } else {
                    calls.append(Call(name: name, text: String(call), begin: number, end: number))
                }
            }
        }
        self.calls = calls.sorted { $0.begin < $1.begin }
    }

    /// The first call with one of these names and all of these words that began after `line`.
    func first(
        _ names: Set<String>, _ words: String..., after line: Int = -1,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Call {
        let found = calls.first { call in
            names.contains(call.name) && call.begin > line && words.allSatisfy { call.text.contains($0) }
        }
        return try #require(
            found, "\(names.sorted()) with \(words) after line \(line) in\n\(description)",
            sourceLocation: sourceLocation)
    }

    private var description: String {
        calls.map { "\($0.begin)-\($0.end) \($0.text.prefix(160))" }.joined(separator: "\n")
    }
}
