import ResumableTransfer
import SystemCalls

/// The lists of the files that commands with several files have sent. A list exists until all of its files were sent,
/// by any commands, or until one of them is canceled and no other one needs the list. Changes that wait at the same time
/// share one synchronization.
final class SentFilesLists: Sendable {
    /// A list that was found.
    private enum Found {
        case usable(SentFilesList)
        case unusable
    }

    private struct State {
        /// All lists that were found, by their names.
        var lists: [FilePath: Found] = [:]
        /// The list of this command.
        var own: FilePath?
        /// Whether the files that were sent are sent again.
        var shouldSendAll = false
        var directory: PrivateDirectory?

        /// The list with this name; `nil` if there is none that can be used.
        func list(_ name: FilePath) -> SentFilesList? {
            if case .usable(let list)? = lists[name] { list } else { nil }
        }

        /// Changes a list in place.
        /// - Returns: `nil` if there is no such list that can be used.
        mutating func change<Result>(_ name: FilePath, _ body: (inout SentFilesList) -> Result) -> Result? {
            guard var list = self.list(name) else { return nil }
            // If the dictionary still had the list, each change would copy all entries.
            lists[name] = .unusable
            defer { lists[name] = .usable(list) }
            return body(&list)
        }
    }

    /// A change that waits until it is on stable storage.
    private struct Waiting: Sendable {
        let change: SentFilesList.Change
        let transfer: TransferIdentity
        /// Whether the change is only for the list of this command.
        let isOwn: Bool
        let continuation: CheckedContinuation<Errno?, Never>
    }

    private struct Queue {
        var waiting: [Waiting] = []
        var isWriting = false
    }

    private let state = Monitor(State())
    private let queue = Monitor(Queue())

    /// The directory for states, which is opened once.
    func directory() throws(CommandFailure) -> PrivateDirectory {
        if let directory = state.withLock({ $0.directory }) { return directory }
        let directory = try PrivateDirectory.states()
        state.withLock { $0.directory = directory }
        return directory
    }

    /// Reads the lists that were created since the last call, and drops those that no longer exist.
    private func refresh(_ state: inout State) {
        guard let states = PrivateDirectory.existingStates() else {
            state.lists = [:]
            return
        }
        let found = Set(SentFilesList.names(in: states))
        for name in state.lists.keys where !found.contains(name) { state.lists[name] = nil }
        for name in found where state.lists[name] == nil {
            state.lists[name] = SentFilesList(name, in: states).map { Found.usable($0) } ?? .unusable
        }
    }

    /// Finds the list of a command with these transfers, or creates it so that other commands can find it.
    /// - Parameter shouldRestart: whether the files that an earlier run has sent are sent again. A list that another
    ///   process uses is kept, because it may have the only states of uploads that are running.
    func openList(of transfers: [TransferIdentity], shouldRestart: Bool) {
        state.withLock { state in
            let name = SentFilesList.name(of: transfers)
            refresh(&state)
            if shouldRestart, let list = state.list(name), let states = PrivateDirectory.existingStates(),
                !Self.isNeeded(list, states, Set(states.names().map { FilePath($0) }))
            {
                list.remove()
                state.lists[name] = nil
            }
            state.own = name
            state.shouldSendAll = shouldRestart
            guard state.list(name) == nil, let states = try? PrivateDirectory.states(),
                let list = try? SentFilesList(of: transfers, named: name, in: states)
            else { return }
            state.lists[name] = .usable(list)
        }
    }

    /// Returns the entry of `path` in the list of this command; `nil` if there is none, or if the file has changed.
    func entry(of path: FilePath) -> SentFilesList.Entry? {
        state.withLock { state in
            guard let name = state.own, !state.shouldSendAll else { return nil }
            return state.change(name) { $0.refresh() ? $0.entry(of: path) : nil } ?? nil
        }
    }

    /// Notes in all lists with `transfer` that its file has been sent.
    func addSent(_ entry: SentFilesList.Entry, of transfer: TransferIdentity) async throws(Errno) {
        do throws(Errno) {
            try await append(.sent(entry), of: transfer, isOwn: false)
        } catch {
            // Another command may have just removed the list.
            if error != .noSuchFile { throw error }
        }
    }

    /// Saves, in the list of this command, the state of an upload that has begun.
    /// - Throws: `noSuchFile` if there is no such list; the error if the list cannot be written.
    func addBegun(_ saved: SavedTransfer) async throws(Errno) {
        try await append(.begun(saved), of: saved.identity, isOwn: true)
    }

    /// Removes the state of an upload from the list of this command.
    func removeBegun(_ transfer: TransferIdentity) async {
        try? await append(.ended(transfer.path), of: transfer, isOwn: true)
    }

    /// Appends a change and waits until it is on stable storage.
    private func append(
        _ change: SentFilesList.Change, of transfer: TransferIdentity, isOwn: Bool
    ) async throws(Errno) {
        if isOwn, state.withLock({ $0.own == nil }) { throw .noSuchFile }
        let failure: Errno? = await withCheckedContinuation { continuation in
            let isWriting = queue.withLock { queue in
                queue.waiting.append(
                    Waiting(change: change, transfer: transfer, isOwn: isOwn, continuation: continuation))
                defer { queue.isWriting = true }
                return queue.isWriting
            }
            if !isWriting { BlockingWork.start { self.writeAll() } }
        }
        if let failure { throw failure }
    }

    private func writeAll() {
        while true {
            let batch = queue.withLock { queue in
                defer { queue.waiting = [] }
                if queue.waiting.isEmpty { queue.isWriting = false }
                return queue.waiting
            }
            if batch.isEmpty { return }
            for (waiting, failure) in zip(batch, write(batch)) { waiting.continuation.resume(returning: failure) }
        }
    }

    /// - Returns: the error of each change; `nil` if it succeeded.
    private func write(_ batch: [Waiting]) -> [Errno?] {
        var failures = batch.map { $0.isOwn ? Errno.noSuchFile : nil }
        for (part, isOwn, file) in append(batch) {
            do throws(Errno) {
                // The lists are not locked meanwhile, so that the running transfers continue, and add the changes of the
                // next batch.
                try file.get().synchronizeData()
                // A file that was sent is noted in all lists, so an error of another list remains.
                if isOwn { for index in part where batch[index].isOwn { failures[index] = nil } }
            } catch {
                // Another command may have removed its list, which does not hide the error of a list that exists.
                for index in part where failures[index] ?? .noSuchFile == .noSuchFile { failures[index] = error }
            }
        }
        return failures
    }

    /// Appends the changes to the lists, which then have to be synchronized.
    /// - Returns: for each changed list the indices of its changes, whether it is the list of this command, and its file.
    private func append(_ batch: [Waiting]) -> [(part: [Int], isOwn: Bool, file: Result<FileDescriptor, Errno>)] {
        state.withLock { state in
            // Only files that were sent are noted in the lists of other commands.
            if !batch.allSatisfy(\.isOwn) { refresh(&state) }
            var appended: [(part: [Int], isOwn: Bool, file: Result<FileDescriptor, Errno>)] = []
            for name in Array(state.lists.keys) {
                let isOwn = name == state.own
                _ = state.change(name) { list in
                    let part = batch.indices.filter { (isOwn || !batch[$0].isOwn) && list.has(batch[$0].transfer) }
                    if part.isEmpty { return }
                    let file = Result { () throws(Errno) in try list.write(part.map { batch[$0].change }) }
                    appended.append((part, isOwn, file))
                }
            }
            return appended
        }
    }

    /// Removes the lists that contain any of `transfers` and are complete. A command with several files calls this at
    /// its end, because it needs its own list until then.
    func removeCompleteLists(_ transfers: [TransferIdentity]) {
        state.withLock { state in
            refresh(&state)
            for name in Array(state.lists.keys) {
                _ = state.change(name) { list in
                    guard transfers.contains(where: { list.has($0) }), list.refresh() else { return }
                    if list.isComplete { list.remove() }
                }
            }
        }
    }

    /// Removes the list of this command if all its files are sent, or if the list is useless: no file was sent, no
    /// transfer can be resumed, and no other process uses the list. Two processes that run the same command share the
    /// list.
    func closeList(isDone: Bool) {
        state.withLock { state in
            guard let name = state.own, state.change(name, { $0.refresh() }) == true,
                let list = state.list(name)
            else { return }
            if isDone { return list.remove() }
            guard list.isEmpty, let states = PrivateDirectory.existingStates() else { return }
            let names = Set(states.names().map { FilePath($0) })
            let hasState = list.transfers.contains { names.contains(FilePath($0.name) + StateFile.suffix) }
            if !hasState, !Self.isNeeded(list, states, names) { list.remove() }
        }
    }

    /// Removes the lists with a transfer that was canceled. A list that is still needed for other transfers is kept,
    /// without the state of this transfer.
    func cancel(_ transfer: TransferIdentity) {
        state.withLock { state in
            refresh(&state)
            guard let states = PrivateDirectory.existingStates() else { return }
            let names = Set(states.names().map { FilePath($0) })
            for name in Array(state.lists.keys) {
                _ = state.change(name) { list in
                    guard list.has(transfer), list.refresh() else { return }
                    if list.begun[transfer.path] != nil, let change = try? SentFilesList.Change.ended(transfer.path) {
                        try? list.append([change])
                    }
                    if !Self.isNeeded(list, states, names, besides: transfer) { list.remove() }
                }
            }
        }
    }

    /// Whether a list has the state of an upload, or another process runs one of its transfers.
    /// - Parameters:
    ///   - names: the names of all files in `states`.
    ///   - canceled: a transfer that does not count.
    private static func isNeeded(
        _ list: SentFilesList, _ states: PrivateDirectory, _ names: Set<FilePath>,
        besides canceled: TransferIdentity? = nil
    ) -> Bool {
        list.transfers.contains { transfer in
            if transfer == canceled { return false }
            if list.begun[transfer.path] != nil { return true }
            let lock = FilePath(transfer.name) + StateFile.lockSuffix
            guard names.contains(lock) else { return false }
            let holder = StateLock.holder(of: lock, in: states)
            return holder.isHeld && holder.process != ProcessControl.identifier
        }
    }
}

extension SentFilesLists {
    /// Writes a state file for each upload whose state is only in a list, because the command was killed. A command
    /// calls this before it uses states.
    static func restoreStates() {
        guard let states = PrivateDirectory.existingStates() else { return }
        for name in SentFilesList.names(in: states) {
            guard var list = SentFilesList(name, in: states) else { continue }
            for saved in list.begun.values {
                // If the upload is running, its state is locked.
                guard let state = try? CommandState.claim(saved.identity, chosen: nil) else { continue }
                // The upload may have ended before the lock was acquired.
                guard list.refresh(), list.begun[saved.identity.path] != nil, state.restore(saved),
                    let change = try? SentFilesList.Change.ended(saved.identity.path)
                else { continue }
                try? list.append([change])
            }
        }
    }
}
