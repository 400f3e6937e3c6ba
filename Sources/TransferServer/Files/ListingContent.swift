import SystemCalls
import UploadStorage

/// The content of a listing. An entry is read and formatted only when the connection can send it.
final class ListingContent: ContentStream {
    private enum Stage {
        case start, entries, ended
    }

    private struct State {
        let listing: PublishedListing
        var stage = Stage.start
        var hasEntries = false
        /// The output; the bytes from `sent` on are not sent yet.
        var written: [UInt8] = []
        var sent = 0
    }

    private let state: Monitor<State>
    private let format: any ListingFormat

    init(_ listing: sending PublishedListing, as format: any ListingFormat) {
        state = Monitor(State(listing: listing))
        self.format = format
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int {
        try state.withLock { (state) throws(StoreError) in
            var filled = 0
            while filled < buffer.count {
                if state.sent == state.written.count, try !write(to: &state) { break }
                let count = min(buffer.count - filled, state.written.count - state.sent)
                UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                    .copyBytes(from: state.written[state.sent..<state.sent + count])
                filled += count
                state.sent += count
            }
            return filled
        }
    }

    /// Replaces the sent output with the next part; returns false if there is no next part.
    private func write(to state: inout State) throws(StoreError) -> Bool {
        state.written.removeAll(keepingCapacity: true)
        state.sent = 0
        switch state.stage {
        case .start:
            format.appendStart(to: &state.written)
            state.stage = .entries
        case .entries:
            if let entry = try state.listing.next() {
                format.append(entry, isFirst: !state.hasEntries, to: &state.written)
                state.hasEntries = true
            } else {
                format.appendEnd(to: &state.written)
                state.stage = .ended
            }
        case .ended: return false
        }
        return true
    }
}
