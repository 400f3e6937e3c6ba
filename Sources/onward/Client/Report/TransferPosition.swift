import ResumableTransfer

/// How far a transfer is.
struct TransferPosition: Sendable, Hashable {
    let kind: TransferIdentity.Kind
    /// Of an upload: the position up to which bytes were handed out. Of a download: bytes at hand.
    var moved: Int64 = 0
    /// Of an upload: what the server said it keeps.
    var acknowledged: Int64 = 0
    /// Bytes; `nil` while it is unknown.
    var total: Int64?

    mutating func update(with event: TransferEvent) {
        switch event {
        case .started(let total): self.total = total ?? self.total
        case .progress(let sent, let acknowledged, let total):
            moved = sent
            self.acknowledged = acknowledged
            self.total = total ?? self.total
        case .received(let count, let total):
            moved = count
            self.total = total ?? self.total
        case .resumed(let offset):
            moved = offset
            if kind == .put { acknowledged = max(acknowledged, offset) }
        case .informational, .interrupted, .checkpoint, .completed, .failed: break
        }
    }

    /// What need not be moved again as far as is known.
    var kept: Int64 { kind == .put ? acknowledged : moved }

    /// The counts of an event.
    var members: [(String, JSONLine.Value)] {
        let total: (String, JSONLine.Value) = ("total", self.total.map { .number($0) } ?? .null)
        return switch kind {
        case .put: [("sent", .number(moved)), ("acknowledged", .number(acknowledged)), total]
        case .get: [("received", .number(moved)), total]
        }
    }

    /// For people: "42 %, 1.26 GB of 3.00 GB".
    var text: String { text(of: moved) }

    /// What need not be moved again, for people: "42 %, 1.26 GB of 3.00 GB acknowledged".
    var keptText: String { text(of: kept) + (kind == .put ? " acknowledged" : "") }

    private func text(of count: Int64) -> String {
        guard let total else { return Amount.bytes(count) }
        return "\(Amount.share(count, of: total)) %, \(Amount.bytes(count)) of \(Amount.bytes(total))"
    }
}
