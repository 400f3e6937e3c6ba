import SystemCalls

/// The events on the connections of one case, in order, with times. It keeps a bounded number of bytes and counts
/// the others.
package final class Transcript {
    package enum Event: Sendable, Hashable {
        case sent([UInt8], omitted: Int)
        case received([UInt8], omitted: Int)
        /// A change of the connection, such as opened, half-closed or reset.
        case note(String)
    }

    package struct Entry: Sendable, Hashable {
        /// The time of the event, in microseconds since the start of the case.
        let time: Int64
        /// The number of the connection, from 1.
        let connection: Int
        var event: Event
    }

    static let bytesPerEntry = 4 << 10
    static let bytesInAll = 64 << 10
    static let entriesInAll = 400

    private var kept: [Entry] = []
    /// The number of events that exceeded the size of the transcript.
    private(set) var omittedEvents = 0
    private let start = SystemClock.monotonicNanoseconds()
    private var size = 0
    private var connections = 0

    /// The entries for reports, in which the credentials that were sent are hidden.
    var entries: [Entry] {
        kept.map { entry in
            guard case .sent(let bytes, let omitted) = entry.event else { return entry }
            var entry = entry
            entry.event = .sent(Credentials.hidden(in: bytes), omitted: omitted)
            return entry
        }
    }

    package init() {}

    func newConnection() -> Int {
        connections += 1
        return connections
    }

    func note(_ text: String, on connection: Int) { add(.note(text), connection) }

    func sent(_ bytes: some Collection<UInt8>, on connection: Int) {
        let head = retain(bytes)
        if case .sent(let earlier, let omitted)? = lastEvent(on: connection), earlier.count < Self.bytesPerEntry {
            kept[kept.count - 1].event = .sent(earlier + head, omitted: omitted + bytes.count - head.count)
        } else {
            add(.sent(head, omitted: bytes.count - head.count), connection)
        }
    }

    func received(_ bytes: some Collection<UInt8>, on connection: Int) {
        let head = retain(bytes)
        add(.received(head, omitted: bytes.count - head.count), connection)
    }

    /// Returns the last event if it happened on this connection and less than a millisecond ago.
    private func lastEvent(on connection: Int) -> Event? {
        guard let last = kept.last, last.connection == connection, now - last.time < 1000 else { return nil }
        return last.event
    }

    private var now: Int64 { (SystemClock.monotonicNanoseconds() - start) / 1000 }

    private func retain(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let head = Array(bytes.prefix(max(0, min(Self.bytesPerEntry, Self.bytesInAll - size))))
        size += head.count
        return head
    }

    private func add(_ event: Event, _ connection: Int) {
        guard kept.count < Self.entriesInAll else {
            omittedEvents += 1
            return
        }
        kept.append(Entry(time: now, connection: connection, event: event))
    }
}
