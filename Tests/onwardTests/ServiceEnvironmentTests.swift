import CommandLineInterface
import SystemCalls
import Testing

@testable import onward

@Suite("Messages from and to a service manager", .timeLimit(.minutes(15)))
struct ServiceEnvironmentTests {
    private func read(_ variables: [String: String]) throws(OptionError) -> ServiceEnvironment {
        try ServiceEnvironment(variables, process: 42)
    }

    @Test("Without a service manager there are no sockets and no watchdog")
    func none() throws {
        #expect(try read([:]) == ServiceEnvironment())
        #expect(try read(["NOTIFY_SOCKET": ""]) == ServiceEnvironment())
    }

    @Test("Sockets and their names are used only by the process that LISTEN_PID identifies")
    func sockets() throws {
        #expect(try read(["LISTEN_PID": "42", "LISTEN_FDS": "2"]).socketNames == ["", ""])
        let named = ["LISTEN_PID": "42", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "onward.socket:admin"]
        #expect(try read(named).socketNames == ["onward.socket", "admin", ""])
        #expect(try read(["LISTEN_PID": "43", "LISTEN_FDS": "2"]).socketNames.isEmpty)
        #expect(try read(["LISTEN_FDS": "2"]).socketNames.isEmpty)
        // Values for another process are not checked.
        #expect(try read(["LISTEN_PID": "43", "LISTEN_FDS": "many"]).socketNames.isEmpty)
        for count in ["", "0", "-1", "many", "99999999999999999999"] {
            #expect(throws: OptionError.self) { try read(["LISTEN_PID": "42", "LISTEN_FDS": count]) }
        }
    }

    @Test("The interval of the watchdog is used only by the process that WATCHDOG_PID identifies")
    func watchdog() throws {
        #expect(try read(["WATCHDOG_USEC": "180000000"]).watchdogInterval == 180_000_000)
        #expect(try read(["WATCHDOG_USEC": "1", "WATCHDOG_PID": "42"]).watchdogInterval == 1)
        #expect(try read(["WATCHDOG_USEC": "1", "WATCHDOG_PID": "41"]).watchdogInterval == nil)
        for interval in ["0", "-5", "soon", "9223372036854775807"] {
            #expect(throws: OptionError.self) { try read(["WATCHDOG_USEC": interval]) }
        }
    }

    private struct Seen {
        var checks = 0
        /// The number of checks that returned.
        var returned = 0
        var messages = 0
        var alarms = 0
        var isStuck = false
    }

    private static func soon() -> Int64 { SystemClock.monotonicNanoseconds() + 60_000_000_000 }

    @Test("Keep-alive messages are sent after a check, stop while a check does not return, and then continue")
    func stuck() throws {
        let seen = Monitor(Seen())
        let watchdog = try Watchdog(
            interval: 20_000_000,
            check: { _ -> Bool? in
                seen.withLock { $0.checks += 1 }
                seen.notifyAll()
                seen.waitForever { state -> Void? in
                    if state.isStuck { return nil }
                    state.returned += 1
                    return ()
                }
                return true
            },
            send: { _ in
                seen.withLock { $0.messages += 1 }
                seen.notifyAll()
            }, alarm: {})
        #expect(seen.wait(until: Self.soon()) { $0.messages >= 3 ? true : nil } == true)
        seen.withLock { $0.isStuck = true }
        // A check is running that cannot return, and the message for the previous check was sent.
        let isStuck = seen.wait(until: Self.soon()) {
            $0.checks > $0.returned && $0.messages == $0.returned ? true : nil
        }
        #expect(isStuck == true)
        let messages = seen.withLock { $0.messages }
        #expect(
            seen.wait(until: SystemClock.monotonicNanoseconds() + 200_000_000) { $0.messages > messages ? true : nil }
                == nil)
        seen.withLock { $0.isStuck = false }
        seen.notifyAll()
        #expect(seen.wait(until: Self.soon()) { $0.messages >= messages + 2 ? true : nil } == true)
        watchdog.stop()
    }

    @Test("A health check that fails sends no message, is logged once, and is repeated")
    func failing() throws {
        let seen = Monitor(Seen(isStuck: true))
        let watchdog = try Watchdog(
            interval: 20_000_000,
            check: { _ -> Bool? in
                defer { seen.notifyAll() }
                return seen.withLock {
                    $0.checks += 1
                    return $0.isStuck ? nil : true
                }
            },
            send: { _ in
                seen.withLock { $0.messages += 1 }
                seen.notifyAll()
            }, alarm: { seen.withLock { $0.alarms += 1 } })
        #expect(seen.wait(until: Self.soon()) { $0.checks >= 5 ? true : nil } == true)
        seen.withLock {
            #expect($0.messages == 0)
            #expect($0.alarms == 1)
            $0.isStuck = false
        }
        #expect(seen.wait(until: Self.soon()) { $0.messages >= 2 ? true : nil } == true)
        watchdog.stop()
    }
}
