import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("The queue of transfers", .timeLimit(.minutes(15)))
struct TransferQueueTests {
    private final class Item: Sendable {}

    @Test(
        "transfers run in order of priority, then in order of arrival, and never more than the limit at the same time",
        arguments: [UInt64](1...20))
    func order(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let limit = Int.random(in: 1...4, using: &generator)
        let queue = TransferQueue(limit: limit)
        let priorities: [TaskPriority] = [.background, .low, .medium, .high]
        /// The expected state of the queue, in order of arrival.
        var model: [(item: Item, priority: TaskPriority, isRunning: Bool)] = []
        func admit() {
            while model.filter(\.isRunning).count < limit {
                let best = model.filter { !$0.isRunning }.map(\.priority).max()
                guard let best, let next = model.firstIndex(where: { !$0.isRunning && $0.priority == best })
                else { return }
                model[next].isRunning = true
            }
        }
        for _ in 0..<300 {
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                let item = Item()
                let priority = priorities.randomElement(using: &generator) ?? .medium
                model.append((item, priority, false))
                queue.add(ObjectIdentifier(item), priority: priority)
            case 2:
                guard let index = model.indices.filter({ !model[$0].isRunning }).randomElement(using: &generator)
                else { continue }
                model[index].priority = priorities.randomElement(using: &generator) ?? .medium
                queue.setPriority(model[index].priority, of: ObjectIdentifier(model[index].item))
            default:
                guard let index = model.indices.randomElement(using: &generator) else { continue }
                let item = model.remove(at: index).item
                queue.remove(ObjectIdentifier(item))
                queue.remove(ObjectIdentifier(item))
            }
            admit()
            for entry in model {
                #expect(queue.isWaiting(ObjectIdentifier(entry.item)) == !entry.isRunning, "seed \(seed)")
            }
        }
    }

    @Test("a wait ends when the transfer starts or is removed, and immediately if the transfer runs already")
    func waits() async {
        let queue = TransferQueue(limit: 1)
        let items = (0..<3).map { _ in Item() }
        for item in items { queue.add(ObjectIdentifier(item), priority: .medium) }
        await queue.wait(ObjectIdentifier(items[0]))
        let waits = items.dropFirst().map { item in Task { await queue.wait(ObjectIdentifier(item)) } }
        queue.remove(ObjectIdentifier(items[2]))
        await waits[1].value
        #expect(queue.isWaiting(ObjectIdentifier(items[1])))
        queue.remove(ObjectIdentifier(items[0]))
        await waits[0].value
        #expect(!queue.isWaiting(ObjectIdentifier(items[1])))
    }

    @Test("a closed queue admits no transfer")
    func closed() {
        let queue = TransferQueue(limit: 1)
        let items = (0..<2).map { _ in Item() }
        for item in items { queue.add(ObjectIdentifier(item), priority: .medium) }
        queue.close()
        queue.remove(ObjectIdentifier(items[0]))
        #expect(queue.isWaiting(ObjectIdentifier(items[1])))
    }

    @Test("20,000 transfers can wait")
    func many() {
        let queue = TransferQueue(limit: 1)
        let items = (0..<20_000).map { _ in Item() }
        for item in items { queue.add(ObjectIdentifier(item), priority: .medium) }
        for item in items {
            #expect(!queue.isWaiting(ObjectIdentifier(item)))
            queue.remove(ObjectIdentifier(item))
        }
    }
}
