import Glibc
import SystemCalls
import TestSupport
import Testing

@Suite("A thread waits for several descriptors", .timeLimit(.minutes(5)))
struct EventQueueTests {
    private static let hour: Int32 = 3_600_000

    private let queue: EventQueue
    private let ends: (FileDescriptor, FileDescriptor)

    init() throws {
        queue = try EventQueue()
        var numbers: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &numbers) == 0)
        ends = (FileDescriptor(owning: numbers[0]), FileDescriptor(owning: numbers[1]))
    }

    private func events(_ milliseconds: Int32) -> [Int32: EventQueue.Readiness] {
        var events: [Int32: EventQueue.Readiness] = [:]
        queue.wait(milliseconds) { events[$0] = $1 }
        return events
    }

    @Test("a descriptor is reported for what it is ready for, until it is removed")
    func readiness() throws {
        let descriptor = ends.0.rawValue
        try queue.watch(descriptor, for: .input)
        #expect(events(0).isEmpty)
        try queue.watch(descriptor, for: .output)
        #expect(events(Self.hour) == [descriptor: .output])
        #expect(write(ends.1.rawValue, "x", 1) == 1)
        try queue.watch(descriptor, for: [.input, .output])
        #expect(events(Self.hour) == [descriptor: [.input, .output]])
        // The state is reported again as long as it lasts.
        #expect(events(Self.hour) == [descriptor: [.input, .output]])
        queue.remove(descriptor)
        #expect(events(0).isEmpty)
        queue.remove(descriptor)
    }

    @Test("a connection that was closed has failed, and has input")
    func failure() throws {
        try queue.watch(ends.0.rawValue, for: .input)
        #expect(shutdown(ends.1.rawValue, Int32(SHUT_RDWR)) == 0)
        #expect(events(Self.hour) == [ends.0.rawValue: [.input, .failure]])
    }

    @Test("another thread ends the wait, once for each call, even before it begins")
    func wake() async throws {
        queue.wake()
        #expect(events(Self.hour).isEmpty)
        #expect(events(0).isEmpty)
        let queue = queue
        let hour = Self.hour
        async let woken: Void? = try? WorkerThread.run(name: "waits") { queue.wait(hour) { _, _ in } }
        queue.wake()
        #expect(await woken != nil)
    }
}
