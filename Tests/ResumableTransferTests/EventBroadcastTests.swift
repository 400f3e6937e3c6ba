import HTTPSemantics
import Testing

@testable import ResumableTransfer

@Suite struct EventBroadcastTests {
    /// A short name of an event.
    private func name(_ event: TransferEvent) -> String {
        switch event {
        case .waiting: "waiting"
        case .started: "started"
        case .progress(let sent, _, _): "progress \(sent)"
        case .received(let count, _): "received \(count)"
        case .informational(let status, _): "informational \(status)"
        case .interrupted: "interrupted"
        case .resumed(let offset): "resumed \(offset)"
        case .checkpoint: "checkpoint"
        case .completed: "completed"
        case .failed: "failed"
        }
    }

    private func names(of stream: AsyncStream<TransferEvent>) async -> [String] {
        var names: [String] = []
        for await event in stream { names.append(name(event)) }
        return names
    }

    @Test("every stream gets all events, except that an unread event is replaced by the next one of its kind")
    func coalescing() async {
        let broadcast = EventBroadcast()
        let streams = [broadcast.stream(), broadcast.stream()]
        broadcast.send(.started(total: 9))
        for count in 1...5 { broadcast.send(.progress(sent: Int64(count), acknowledged: 0, total: 9)) }
        broadcast.send(.informational(104, [:]))
        broadcast.send(.informational(104, [:]))
        broadcast.send(.progress(sent: 9, acknowledged: 9, total: 9))
        broadcast.send(.completed)
        broadcast.send(.resumed(at: 1))
        for stream in streams {
            #expect(
                await names(of: stream) == [
                    "started", "informational 104", "informational 104", "progress 9", "completed",
                ])
        }
    }

    @Test("if no one reads the events of a download, a limited number of them waits, including the last one")
    func bounded() async throws {
        let data = try ResumeData(.uploadSample())
        let broadcast = EventBroadcast()
        let (alternating, endless) = (broadcast.stream(), broadcast.stream())
        for count in 1...1100 {
            broadcast.send(.received(Int64(count), total: nil))
            broadcast.send(.checkpoint(data))
        }
        var reader = alternating.makeAsyncIterator()
        var found: [String] = []
        for _ in 0..<2 { if let event = await reader.next() { found.append(name(event)) } }
        #expect(found == ["received 1100", "checkpoint"])
        for _ in 1...1100 { broadcast.send(.informational(104, [:])) }
        broadcast.send(.completed)
        let names = await names(of: endless)
        #expect(names.count == 1024 && names.last == "completed")
    }

    @Test("a later stream begins with the current state of the transfer")
    func lateStream() async {
        let broadcast = EventBroadcast()
        broadcast.send(.started(total: nil))
        broadcast.send(.progress(sent: 3, acknowledged: 2, total: nil))
        let early = broadcast.stream()
        broadcast.send(.failed(TransferError(.gone, "")))
        #expect(await names(of: early) == ["started", "progress 3", "failed"])
        #expect(await names(of: broadcast.stream()) == ["started", "progress 3", "failed"])
    }

    @Test("a waiting reader gets the next event, and a canceled reader stops", .timeLimit(.minutes(15)))
    func waiting() async {
        let broadcast = EventBroadcast()
        let stream = broadcast.stream()
        let reader = Task { await names(of: stream) }
        await Task.yield()
        broadcast.send(.started(total: 1))
        broadcast.send(.completed)
        #expect(await reader.value.last == "completed")
        let idle = EventBroadcast()
        let never = idle.stream()
        let canceled = Task { await names(of: never) }
        await Task.yield()
        canceled.cancel()
        #expect(await canceled.value.isEmpty)
    }
}
