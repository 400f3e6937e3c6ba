import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct RetryPolicyTests {
    @Test("CLI-35: delays increase to the last value of the list, and each delay is multiplied by a random factor")
    func delays() {
        let policy = RetryPolicy()
        #expect(
            (1...9).map { policy.delay(before: $0, random: 1) } == [0, 1, 2, 4, 8, 15, 30, 30, 30].map { .seconds($0) })
        #expect(policy.delay(before: 4, random: 0.5) == .seconds(2))
        #expect(policy.delay(before: 4, random: 0) == .zero)
    }

    @Test("a retry after a refusal waits for at least half of its delay, or of the first positive delay")
    func refused() {
        let policy = RetryPolicy()
        let all = (1...8).map { policy.delay(before: $0, random: 1, isRefused: true) }
        #expect(all == [1, 1, 2, 4, 8, 15, 30, 30].map { .seconds($0) })
        #expect(policy.delay(before: 1, random: 0, isRefused: true) == .milliseconds(500))
    }

    @Test("a policy without delays never waits")
    func none() {
        var policy = RetryPolicy()
        policy.delays = []
        #expect(policy.delay(before: 3, random: 1) == .zero)
        #expect(policy.delay(before: 3, random: 1, isRefused: true) == .zero)
    }

    @Test(
        "Retry-After is a number of seconds or a date, and has a maximum",
        arguments: [
            ("5", 5), ("0", 0), ("100000", 600), ("99999999999999999999", 600), ("-1", nil), ("1.5", nil), ("", nil),
            ("soon", nil), ("Sun, 06 Nov 1994 08:49:37 GMT", 37), ("Sun, 06 Nov 1994 08:48:37 GMT", 0),
        ])
    func retryAfter(value: String, expected: Double?) {
        // The time is 1994-11-06 08:49:00.
        let delay = RetryPolicy().retryAfter(["Retry-After": value], now: 784_111_740)
        #expect(delay == expected.map { .seconds($0) })
    }
}
