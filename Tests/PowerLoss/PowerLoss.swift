import Glibc
import SystemCalls
import TestSupport
import UploadStorage

/// Runs a store on a recorded disk, simulates power losses at random points, and checks the state that the next start
/// of the store finds.
///
/// `ONWARD_HISTORIES` is the number of histories, `ONWARD_SEED` the seed of the first one. The exit status is 1 if
/// acknowledged state was lost.
@main
enum PowerLoss {
    private static let crashesPerHistory = 12

    static func main() {
        let count = environment("ONWARD_HISTORIES").flatMap { Int($0) } ?? 100
        let first = environment("ONWARD_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 1...999_999_999)
        print("power loss: \(count) histories, the first with ONWARD_SEED=\(first)")
        let begin = SystemClock.monotonicNanoseconds()
        var (crashes, commonSynchronizations) = (0, 0)
        do {
            let place = try makePlace()
            defer { try? Directory.remove(place) }
            for seed in first..<first + UInt64(count) {
                var trial = CrashSimulation(seed: seed, place: place)
                let failure = try trial.run(script(seed), crashes: crashesPerHistory)
                crashes += trial.crashes
                commonSynchronizations += trial.commonSynchronizations
                guard let failure else { continue }
                report(try shrink(failure, seed, place), seed)
                try? Directory.remove(place)
                exit(1)
            }
        } catch {
            print("power loss: \(error)")
            exit(2)
        }
        let seconds = Double(SystemClock.monotonicNanoseconds() - begin) / 1e9
        print(
            """
            power loss: \(count) histories with \(commonSynchronizations) common synchronizations, \(crashes) crashes \
            survived in \(Int(seconds.rounded())) s
            """)
        // Without them, the histories do not test what they are meant to test.
        if count >= 50 && commonSynchronizations == 0 { exit(3) }
    }

    private static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// A directory in memory if possible, because the cost of synchronization does not matter here.
    private static func makePlace() throws(Errno) -> String {
        let name = "/onward-power-loss-\(getpid())"
        for parent in ["/dev/shm", "/tmp"] {
            do throws(Errno) {
                try FileDescriptor.makeDirectory(parent + name)
                return parent + name
            } catch { continue }
        }
        throw .accessDenied
    }

    private static func script(_ seed: UInt64) -> [Action] {
        var generator = SeededGenerator(seed: seed)
        return (0..<Int.random(in: 5...40, using: &generator)).map { _ in Action.random(using: &generator) }
    }

    // MARK: Shrinking

    /// Removes the actions without which the failure still occurs. The order of threads varies, so each attempt
    /// simulates many crashes.
    private static func shrink(_ failure: CrashSimulation.Failure, _ seed: UInt64, _ place: String) throws
        -> CrashSimulation.Failure
    {
        var smallest = failure
        var step = max(1, failure.script.count / 2)
        while true {
            var start = 0
            while start < smallest.script.count {
                var script = smallest.script
                script.removeSubrange(start..<min(start + step, script.count))
                var trial = CrashSimulation(seed: seed, place: place)
                if let smaller = try trial.run(script, crashes: 150) { smallest = smaller } else { start += step }
            }
            if step == 1 { return smallest }
            step /= 2
        }
    }

    private static func report(_ failure: CrashSimulation.Failure, _ seed: UInt64) {
        print("power loss: FAILED with ONWARD_SEED=\(seed). After these actions")
        for action in failure.script { print("    \(action)") }
        print("and a crash after the last of these events")
        for event in failure.events { print("    \(event)") }
        for problem in failure.problems { print("  - \(problem)") }
    }
}
