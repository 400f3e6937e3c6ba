import Glibc
import SystemCalls
import TestSupport

#if DEBUG
    /// Compares which requests the server serves, on the libmicrohttpd that is installed, with ``ReferenceReading``.
    ///
    /// `ONWARD_CASES` says for how many generated connections, `ONWARD_SEED` with which it begins. Exits with 1 if one differs.
    @main
    enum FramingDifferential {
        static func main() {
            let count = environment("ONWARD_CASES").flatMap { Int($0) } ?? 20_000
            let first = environment("ONWARD_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 1...999_999_999)
            print("framing: \(count) connections from ONWARD_SEED=\(first) on")
            signal(SIGPIPE, SIG_IGN)
            do {
                let differences = try run(seeds: first..<first + UInt64(count))
                for difference in differences { print("framing: FAILED with \(difference)") }
                if differences.isEmpty { print("framing: \(count) connections were read as the reference reads them") }
                exit(differences.isEmpty ? 0 : 1)
            } catch {
                print("framing: \(error)")
                exit(2)
            }
        }

        private static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

        /// - Returns: at most ten seeds with what differs.
        static func run(seeds: Range<UInt64>) throws -> [String] {
            let daemon = try RecordingDaemon()
            defer { daemon.stop() }
            var differences: [String] = []
            for seed in seeds {
                var generator = SeededGenerator(seed: seed)
                let traffic = GeneratedTraffic(&generator)
                if let difference = try DifferentialCase.difference(traffic, daemon) {
                    let text = String(decoding: traffic.bytes.prefix(2000), as: UTF8.self).debugDescription
                    differences.append("ONWARD_SEED=\(seed): \(difference); sent was \(text), cut at \(traffic.cuts)")
                    if differences.count == 10 { break }
                }
            }
            return differences
        }
    }
#else
    @main
    enum FramingDifferential {
        static func main() {
            print("framing: build it in debug mode")
            exit(2)
        }
    }
#endif
