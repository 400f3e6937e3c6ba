import Glibc
import SystemCalls

/// The recorder of this process.
let recorder = Recorder()

/// Records all changes that this process makes below one directory, in one order.
///
/// A call is made and recorded under one lock, so that the events have the order of their effects. Synchronizations are
/// recorded and not made: `Disk` simulates their effect.
final class Recorder: Sendable {
    fileprivate enum Opened {
        case directory(String)
        case file(Int)
    }

    fileprivate struct State {
        var root: String?
        var opened: [CInt: Opened] = [:]
        var names: [String: Disk.Node] = [:]
        var nextFile = 1
        var events: [DiskEvent] = []
    }

    private let state = Monitor(State())
    private let beforeSynchronization = Monitor<(@Sendable () -> Void)?>(nil)

    /// Runs `body` once, before the content of an upload is synchronized.
    func runBeforeSynchronization(_ body: @escaping @Sendable () -> Void) {
        beforeSynchronization.withLock { $0 = body }
    }

    /// Begins to record the changes below `root`, whose content is exactly this image.
    func begin(root: String, image: DiskImage) {
        state.withLock { state in
            state.root = root
            state.opened = [:]
            state.names = image.nodes
            state.nextFile = image.nextFile
            state.events = []
        }
    }

    /// Ends the recording and returns the events.
    func end() -> [DiskEvent] {
        state.withLock { state in
            defer { state = State() }
            return state.events
        }
    }

    /// The number of events so far.
    var position: Int { state.withLock { $0.events.count } }

    // MARK: Calls

    func open(_ directory: CInt, _ path: UnsafePointer<CChar>, _ flags: CInt, _ call: () -> CInt) -> CInt {
        state.withLock { state in
            let descriptor = call()
            guard descriptor >= 0, state.root != nil else { return descriptor }
            state.opened[descriptor] = nil
            guard let name = state.resolve(directory, path) else { return descriptor }
            switch state.names[name] {
            case .directory: state.opened[descriptor] = .directory(name)
            case .file(let file):
                state.opened[descriptor] = .file(file)
                if flags & O_TRUNC != 0 { state.events.append(.truncate(file: file, size: 0)) }
            case nil:
                let file = state.newFile(name)
                state.opened[descriptor] = .file(file)
                state.events.append(.create(name, file: file))
            }
            return descriptor
        }
    }

    func close(_ descriptor: CInt) -> CInt {
        state.withLock { state in
            state.opened[descriptor] = nil
            return Real.close(descriptor)
        }
    }

    func write(_ descriptor: CInt, _ bytes: UnsafeRawPointer?, _ count: Int, _ offset: off_t) -> Int {
        state.withLock { state in
            let done = Real.pwrite(descriptor, bytes, count, offset)
            if done > 0, case .file(let file) = state.opened[descriptor] {
                let content = [UInt8](UnsafeRawBufferPointer(start: bytes, count: done))
                state.events.append(.write(file: file, offset: Int(offset), bytes: content))
            }
            return done
        }
    }

    func truncate(_ descriptor: CInt, _ size: off_t) -> CInt {
        state.withLock { state in
            let result = Real.ftruncate(descriptor, size)
            if result == 0, case .file(let file) = state.opened[descriptor] {
                state.events.append(.truncate(file: file, size: Int(size)))
            }
            return result
        }
    }

    func synchronize(_ descriptor: CInt, withAttributes: Bool, _ call: () -> CInt) -> CInt {
        let isUpload = state.withLock { state in
            guard case .file(let file) = state.opened[descriptor] else { return false }
            return state.names.contains { $0.value == .file(file) && $0.key.hasPrefix("data/uploads/") }
        }
        if isUpload { beforeSynchronization.withLock { $0.take() }?() }
        let isNoted = state.withLock { state in
            switch state.opened[descriptor] {
            case .file(let file):
                var status = stat()
                if withAttributes && Real.fstat(descriptor, &status) == 0 {
                    // Writes have changed the time, too.
                    let time = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
                    state.events.append(.setModified(file: file, time))
                }
                state.events.append(.synchronize(file: file, withAttributes: withAttributes))
            case .directory(let path): state.events.append(.synchronizeDirectory(path))
            case nil: return false
            }
            return true
        }
        return isNoted ? 0 : call()
    }

    func synchronizeAll(_ descriptor: CInt) -> CInt {
        let isNoted = state.withLock { state in
            guard state.opened[descriptor] != nil else { return false }
            // Writes have changed the times, too.
            for (descriptor, opened) in state.opened {
                var status = stat()
                guard case .file(let file) = opened, Real.fstat(descriptor, &status) == 0 else { continue }
                let time = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
                state.events.append(.setModified(file: file, time))
            }
            state.events.append(.synchronizeAll)
            return true
        }
        return isNoted ? 0 : Real.syncfs(descriptor)
    }

    /// Whether the descriptor is below the directory whose changes are recorded.
    func isRecorded(_ descriptor: CInt) -> Bool { state.withLock { $0.opened[descriptor] != nil } }

    func makeDirectory(_ directory: CInt, _ path: UnsafePointer<CChar>, _ call: () -> CInt) -> CInt {
        state.withLock { state in
            let result = call()
            if result == 0, let name = state.resolve(directory, path) {
                state.names[name] = .directory
                state.events.append(.makeDirectory(name))
            }
            return result
        }
    }

    func unlink(_ directory: CInt, _ path: UnsafePointer<CChar>, _ call: () -> CInt) -> CInt {
        state.withLock { state in
            let result = call()
            if result == 0, let name = state.resolve(directory, path) {
                state.names[name] = nil
                state.events.append(.remove(name))
            }
            return result
        }
    }

    func rename(
        _ directory: CInt, _ path: UnsafePointer<CChar>, _ newDirectory: CInt, _ newPath: UnsafePointer<CChar>,
        isExchange: Bool = false, _ call: () -> CInt
    ) -> CInt {
        state.withLock { state in
            let result = call()
            if result == 0, let name = state.resolve(directory, path),
                let newName = state.resolve(newDirectory, newPath)
            {
                let other = state.names[newName]
                state.names[newName] = state.names.removeValue(forKey: name)
                if isExchange { state.names[name] = other }
                state.events.append(isExchange ? .exchange(name, newName) : .move(name, to: newName))
            }
            return result
        }
    }

    func link(
        _ directory: CInt, _ path: UnsafePointer<CChar>, _ newDirectory: CInt, _ newPath: UnsafePointer<CChar>,
        _ call: () -> CInt
    ) -> CInt {
        state.withLock { state in
            let result = call()
            if result == 0, let name = state.resolve(directory, path), case .file(let file) = state.names[name],
                let newName = state.resolve(newDirectory, newPath)
            {
                state.names[newName] = .file(file)
                state.events.append(.link(newName, file: file))
            }
            return result
        }
    }

    func setTimes(_ descriptor: CInt, _ times: UnsafePointer<timespec>?) -> CInt {
        state.withLock { state in
            let result = Real.futimens(descriptor, times)
            if result == 0, let times, case .file(let file) = state.opened[descriptor] {
                let time = times[1]
                let nanoseconds = Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
                state.events.append(.setModified(file: file, nanoseconds))
            }
            return result
        }
    }

    /// Replaces the inode number by the file's number, which is the same in every image, and the change time, which no
    /// program can set, by the modification time.
    func normalizeStatus(_ descriptor: CInt, _ path: UnsafePointer<CChar>?, _ status: inout stat) {
        state.withLock { state in
            guard state.root != nil else { return }
            var file: Int?
            if let path {
                if let name = state.resolve(descriptor, path), case .file(let number) = state.names[name] {
                    file = number
                }
            } else if case .file(let number) = state.opened[descriptor] {
                file = number
            }
            guard let file else { return }
            status.st_ino = ino_t(file)
            status.st_ctim = status.st_mtim
        }
    }
}

extension Recorder.State {
    fileprivate mutating func newFile(_ name: String) -> Int {
        defer { nextFile += 1 }
        names[name] = .file(nextFile)
        return nextFile
    }

    /// A path below the root, without "." and ".."; `nil` for a path elsewhere.
    fileprivate func resolve(_ directory: CInt, _ path: UnsafePointer<CChar>) -> String? {
        guard let root else { return nil }
        let text = String(cString: path)
        var components: [Substring] = []
        if text.hasPrefix("/") {
            guard text == root || text.hasPrefix(root + "/") else { return nil }
            components = text.dropFirst(root.utf8.count).split(separator: "/")
        } else {
            guard case .directory(let parent) = opened[directory] else { return nil }
            components = parent.split(separator: "/") + text.split(separator: "/")
        }
        var result: [Substring] = []
        for component in components where component != "." {
            if component == ".." { result = result.dropLast() } else { result.append(component) }
        }
        return result.joined(separator: "/")
    }
}
