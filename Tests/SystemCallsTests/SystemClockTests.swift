import SystemCalls
import Testing

@Suite("SystemClock")
struct SystemClockTests {
    @Test(
        "the nanoseconds of a wait are at least 0, and at most three years",
        arguments: [
            (.zero, 0), (.milliseconds(-500), 0), (.seconds(-2), 0), (.nanoseconds(1500), 1500),
            (Duration.seconds(2) + .milliseconds(1), 2_001_000_000), (.seconds(Int64.max), 100_000_000_000_000_000),
        ] as [(Duration, Int64)])
    func nanoseconds(wait: Duration, nanoseconds: Int64) {
        #expect(wait.nanoseconds == nanoseconds)
    }
}
