import ResumableTransfer

/// The position of a transfer.
struct TransferPosition: Sendable, Hashable {
    let kind: TransferIdentity.Kind
    /// The position up to which an upload has sent bytes, or the number of bytes that a download has received.
    var moved: Int64 = 0
    /// The number of bytes of an upload that the server has acknowledged.
    var acknowledged: Int64 = 0
    /// The size in bytes; `nil` while it is unknown.
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
        case .waiting, .informational, .interrupted, .checkpoint, .completed, .failed: break
        }
    }

    /// The number of bytes that need not be transferred again, as far as is known.
    var kept: Int64 { kind == .put ? acknowledged : moved }

    /// The counts of an event.
    var members: [(String, JSONLine.Value)] {
        let total: (String, JSONLine.Value) = ("total", self.total.map { .number($0) } ?? .null)
        return switch kind {
        case .put: [("sent", .number(moved)), ("acknowledged", .number(acknowledged)), total]
        case .get: [("received", .number(moved)), total]
        }
    }

    /// The position in messages: "42 %, 1.26 GB of 3.00 GB".
    var text: String { text(of: moved) }

    /// The part that need not be sent or received again, in messages: "42 %, 1.26 GB of 3.00 GB acknowledged".
    var keptText: String { text(of: kept) + (kind == .put ? " acknowledged" : "") }

    private func text(of count: Int64) -> String {
        guard let total else { return Amount.bytes(count) }
        return "\(Amount.share(count, of: total)) %, \(Amount.bytes(count)) of \(Amount.bytes(total))"
    }
}
