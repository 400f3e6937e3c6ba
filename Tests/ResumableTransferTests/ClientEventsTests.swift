import HTTPSemantics
import SystemCalls
import Testing

@testable import ResumableTransfer

@Suite("The events of a client", .timeLimit(.minutes(15)))
struct ClientEventsTests {
    private let client = TransferClient()

    private func transfer() -> any Transfer {
        client.download(TransferRequest("http://files.example/a"), to: .temporary)
    }

    @Test("a stream without a reader keeps a bounded number of events, among them the last event of each transfer")
    func bounded() async {
        let events = ClientEvents()
        let stream = events.stream()
        let transfers = (0..<100).map { _ in transfer() }
        for round in 0..<12 {
            for transfer in transfers {
                events.send(.informational(104, [:]), of: transfer)
                events.send(.received(Int64(round), total: nil), of: transfer)
            }
        }
        for transfer in transfers { events.send(.completed, of: transfer) }
        events.finish()
        var count = 0
        var completed = 0
        for await (_, event) in stream {
            count += 1
            if event.isLast { completed += 1 }
        }
        #expect(count == ClientEvents.capacity && completed == 100)
    }

    @Test("even if only last events wait, their number is bounded, and the newest ones are kept")
    func lastEvents() async {
        let events = ClientEvents()
        let stream = events.stream()
        let transfers = (0..<ClientEvents.capacity + 10).map { _ in transfer() }
        for transfer in transfers { events.send(.completed, of: transfer) }
        events.finish()
        var kept: [any Transfer] = []
        for await (transfer, _) in stream { kept.append(transfer) }
        #expect(kept.count == ClientEvents.capacity && kept.last === transfers.last && kept.first === transfers[10])
    }

    @Test("unread progress of one transfer is replaced by newer progress of the same transfer only")
    func merging() async {
        let events = ClientEvents()
        let stream = events.stream()
        let (first, second) = (transfer(), transfer())
        for count in 1...5 {
            events.send(.received(Int64(count), total: nil), of: first)
            events.send(.received(Int64(count * 10), total: nil), of: second)
        }
        events.finish()
        var found: [Int64] = []
        for await (_, event) in stream { if case .received(let count, _) = event { found.append(count) } }
        #expect(found == [5, 50])
    }

    @Test("a stream that the program has released gets no more events, and is removed from the list")
    func forgotten() async {
        let events = ClientEvents()
        do { _ = events.stream() }
        weak var kept: AnyObject?
        do {
            let transfer = transfer()
            kept = transfer
            events.send(.completed, of: transfer)
        }
        #expect(kept == nil)
    }
}
