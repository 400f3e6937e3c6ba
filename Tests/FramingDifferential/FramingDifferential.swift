import Glibc
import SystemCalls
import TestSupport

#if DEBUG
    /// Compares the requests that the server handles with the requests that ``ReferenceReading`` reads from the same
    /// bytes. The server uses the installed libmicrohttpd.
    ///
    /// `ONWARD_CASES` is the number of generated connections, `ONWARD_SEED` the seed of the first one. The program
    /// exits with 1 if the requests of a connection differ.
    @main
    enum FramingDifferential {
        static func main() {
            let count = environment("ONWARD_CASES").flatMap { Int($0) } ?? 20_000
            let first = environment("ONWARD_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 1...999_999_999)
            print("framing: \(count) connections, the first with ONWARD_SEED=\(first)")
            signal(SIGPIPE, SIG_IGN)
            do {
                let differences = try run(seeds: first..<first + UInt64(count))
                for difference in differences { print("framing: FAILED with \(difference)") }
                if differences.isEmpty { print("framing: \(count) connections were read as by the reference") }
                exit(differences.isEmpty ? 0 : 1)
            } catch {
                print("framing: \(error)")
                exit(2)
            }
        }

        private static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

        /// - Returns: at most ten seeds, each with its difference.
        static func run(seeds: Range<UInt64>) throws -> [String] {
            let daemon = try RecordingDaemon()
            defer { daemon.stop() }
            var differences: [String] = []
            for seed in seeds {
                var generator = SeededGenerator(seed: seed)
                let traffic = GeneratedTraffic(&generator)
                if let difference = try DifferentialCase.difference(traffic, daemon) {
                    let text = String(decoding: traffic.bytes.prefix(2000), as: UTF8.self).debugDescription
                    differences.append("ONWARD_SEED=\(seed): \(difference); sent: \(text), cut at \(traffic.cuts)")
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
            print("framing: build this program in debug mode")
            exit(2)
        }
    }
#endif
