import ResumableTransfer
import SystemCalls

/// The lists of the files that commands with several files have sent. A list exists until all of its files were sent,
/// by any commands, or until one of them is canceled.
final class FinishedFiles: Sendable {
    private struct State {
        /// All lists that were found, by their names; `nil` for a list that cannot be used.
        var lists: [FilePath: SentFilesList?] = [:]
        /// The list of this command.
        var own: FilePath?
    }

    private let state = Monitor(State())

    /// Reads the lists that were created since the last call, and drops those that no longer exist.
    private func refresh(_ state: inout State) {
        guard let states = PrivateDirectory.existingStates() else {
            state.lists = [:]
            return
        }
        let names = states.names().filter { $0.hasPrefix(SentFilesList.prefix) && $0.hasSuffix(SentFilesList.suffix) }
        let found = Set(names.map { FilePath($0) })
        for name in state.lists.keys where !found.contains(name) { state.lists[name] = nil }
        for name in found where state.lists[name] == nil {
            state.lists.updateValue(SentFilesList(name, in: states), forKey: name)
        }
    }

    /// Finds the list of a command with these transfers, or creates it so that other commands can find it.
    /// - Parameter restarts: whether the files that an earlier run has sent are sent again.
    func begin(_ transfers: [TransferIdentity], restarts: Bool) {
        state.withLock { state in
            let name = SentFilesList.name(of: transfers)
            if restarts, let states = PrivateDirectory.existingStates() { states.remove(name) }
            refresh(&state)
            state.own = name
            guard case nil = state.lists[name] ?? nil, let states = try? PrivateDirectory.states() else { return }
            if let list = try? SentFilesList(of: transfers, in: states) { state.lists[name] = list }
        }
    }

    /// Returns the entry of `path` in the list of this command; `nil` if there is none, or if the file has changed.
    func entry(of path: FilePath) -> SentFilesList.Entry? {
        state.withLock { state in
            guard let name = state.own, var list = state.lists[name] ?? nil, list.refresh() else { return nil }
            state.lists[name] = list
            return list.entry(of: path)
        }
    }

    /// Notes in all lists with `transfer` that its file has been sent.
    func add(_ entry: SentFilesList.Entry, of transfer: TransferIdentity) throws(Errno) {
        var failure: Errno?
        state.withLock { state in
            refresh(&state)
            for case let list? in state.lists.values where list.transfers.contains(transfer) {
                do throws(Errno) {
                    try list.append(entry)
                } catch {
                    // Another command may have just removed the list.
                    if error != .noSuchFile { failure = error }
                }
            }
        }
        if let failure { throw failure }
    }

    /// Removes the lists that contain any of `transfers` and are complete. A command with several files calls this at
    /// its end, because it needs its own list until then.
    func removeCompleteLists(_ transfers: [TransferIdentity]) {
        state.withLock { state in
            refresh(&state)
            for (name, list) in state.lists {
                guard var list, transfers.contains(where: { list.transfers.contains($0) }), list.refresh()
                else { continue }
                state.lists[name] = list
                if list.isComplete { list.remove() }
            }
        }
    }

    /// Removes the list of this command if all its files are sent, or if the list is useless, because no file was sent
    /// and no transfer can be resumed.
    func end(isDone: Bool) {
        state.withLock { state in
            guard let name = state.own, var list = state.lists[name] ?? nil, list.refresh() else { return }
            state.lists[name] = list
            if isDone { return list.remove() }
            guard list.isEmpty, let states = PrivateDirectory.existingStates() else { return }
            let names = Set(states.names().map { FilePath($0) })
            if !list.transfers.contains(where: { names.contains(FilePath($0.name) + StateFile.suffix) }) {
                list.remove()
            }
        }
    }

    /// Removes the lists with a transfer that was canceled.
    func cancel(_ transfer: TransferIdentity) {
        state.withLock { state in
            refresh(&state)
            for case let list? in state.lists.values where list.transfers.contains(transfer) { list.remove() }
        }
    }
}
