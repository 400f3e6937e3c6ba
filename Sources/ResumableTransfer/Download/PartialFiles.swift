import SystemCalls

/// The partial files of one download: the one that receives content, and the one with bytes of an earlier
/// representation, which is kept until its replacement is complete.
///
/// ``replace(with:shouldKeepCurrent:)`` is called on the engine's thread. All other methods are called by the driver.
final class PartialFiles: Sendable {
    private struct State {
        var current: PartialFile
        /// The representation whose bytes are in `current`.
        var representation: DownloadRepresentation?
        var earlier: (file: PartialFile, representation: DownloadRepresentation)?
        /// The error if no file could be created for a replacement.
        var failure: Errno?
    }

    private let location: PartialFileLocation
    private let state: Monitor<State>

    init(
        _ location: PartialFileLocation, _ current: PartialFile, _ representation: DownloadRepresentation? = nil,
        earlier: (file: PartialFile, representation: DownloadRepresentation)? = nil
    ) {
        self.location = location
        state = Monitor(State(current: current, representation: representation, earlier: earlier))
    }

    var current: PartialFile { state.withLock { $0.current } }
    var representation: DownloadRepresentation? { state.withLock { $0.representation } }
    var earlier: (file: PartialFile, representation: DownloadRepresentation)? { state.withLock { $0.earlier } }
    var failure: Errno? { state.withLock { $0.failure ?? $0.current.failure } }

    /// Updates the metadata of the representation whose bytes are in the current file.
    func setRepresentation(_ representation: DownloadRepresentation?) {
        state.withLock { $0.representation = representation }
    }

    /// Starts to receive a representation from its beginning.
    /// - Parameter shouldKeepCurrent: whether the current file is kept as the earlier one until the replacement is complete.
    ///   If there is an earlier file already, that one is kept instead.
    func replace(with representation: DownloadRepresentation, shouldKeepCurrent: Bool) throws(Errno) {
        let (current, known, earlier) = state.withLock { ($0.current, $0.representation, $0.earlier) }
        if current.isFresh {
            setRepresentation(representation)
            return try current.begin()
        }
        let file: PartialFile
        do throws(Errno) {
            file = try PartialFile.create(in: location)
            try file.begin()
        } catch {
            state.withLock { $0.failure = error }
            throw error
        }
        let isKept = shouldKeepCurrent && earlier == nil && known != nil
        state.withLock { state in
            if isKept, let known { state.earlier = (current, known) }
            state.current = file
            state.representation = representation
        }
        guard !isKept else { return }
        // The new file usually has no name yet. If the process is killed after this removal, no file is left: a later
        // run does not find the file that the checkpoint names, and downloads everything again.
        current.remove()
        current.close()
    }

    /// Removes the current file. The earlier file becomes the current one.
    func returnToEarlier() {
        let dropped = state.withLock { state -> PartialFile? in
            guard let earlier = state.earlier else { return nil }
            defer {
                state.current = earlier.file
                state.representation = earlier.representation
                state.earlier = nil
            }
            return state.current
        }
        dropped?.remove()
        dropped?.close()
    }

    /// Removes the earlier file: its replacement is complete.
    func removeEarlier() {
        let dropped = state.withLock { state in
            defer { state.earlier = nil }
            return state.earlier?.file
        }
        dropped?.remove()
        dropped?.close()
    }

    func remove() {
        removeEarlier()
        current.remove()
    }

    /// Makes the bytes of both files durable. If this fails for a file, its bytes that are not durable are removed.
    func synchronize() {
        for file in [earlier?.file, current].compactMap({ $0 }) where file.synchronize() != nil {
            file.dropUnsynchronized()
        }
    }

    func close() {
        let files = state.withLock { [$0.earlier?.file, $0.current] }
        for file in files { file?.close() }
    }
}
