import Glibc
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import UploadStorage

/// Runs a script on a store and records the responses of the store, in one order with the events of the disk.
final class History {
    struct Upload {
        let id: UploadID
        let content: [UInt8]
        let name: Int
        let expiresAt: Int64?
        var lease: UploadLease?
    }

    static let names: [PublishedName] = [["a"], ["b"], ["new", "a"], ["new", "deep", "b"]].compactMap {
        PublishedName(segments: $0)
    }
    static let principal = "alice"
    /// The time at which every history begins, in seconds since 1970.
    static let begin: Int64 = 1_000_000

    private let root: String
    private let seed: UInt64
    private let clock = Monitor(History.begin)
    private var store: UploadStore?
    private(set) var uploads: [Upload] = []
    /// The notes, each with the number of disk events before it.
    private(set) var notes: [(position: Int, note: HistoryEntry)] = []

    init(seed: UInt64, root: String) {
        self.seed = seed
        self.root = root
    }

    static func configuration(now: @escaping @Sendable () -> Int64) -> StoreConfiguration {
        var configuration = StoreConfiguration(
            keepCompleted: .seconds(150), minFree: 0, interruptedResponse: Response(status: 500), processingWait: .zero)
        configuration.clock = { ClockReading(wall: now() * 1_000_000_000, boot: now() * 1_000_000_000) }
        return configuration
    }

    private var now: Int64 { clock.withLock { $0 } }

    func run(_ script: [Action]) throws(StoreError) {
        try open()
        for action in script {
            // A script may cause refusals, for example by a lost lease or an upload that has ended.
            do throws(StoreError) { try perform(action) } catch { if error.isForOperator { throw error } }
        }
        shut()
    }

    private func note(_ note: HistoryEntry) { notes.append((recorder.position, note)) }

    private func open() throws(StoreError) {
        store = try UploadStore.open(
            root: root, configuration: Self.configuration { [clock] in clock.withLock { $0 } })
    }

    private func shut() {
        for index in uploads.indices { uploads[index].lease = nil }
        store?.close()
        store = nil
    }

    private func perform(_ action: Action) throws(StoreError) {
        guard let store else { return }
        switch action {
        case .create(let size, let name, let declaresLength, let expires):
            let shouldRecordAtOnce = !declaresLength || uploads.count.isMultiple(of: 3)
            try create(size, name, declaresLength, expires, shouldRecordAtOnce, on: store)
        case .append(let number, let count): try append(number, count, store)
        case .acknowledge(let number):
            guard let index = index(number) else { return }
            note(.acknowledged(upload: index, offset: try lease(index, store).acknowledge()))
            note(.confirmed(upload: index))
        case .startAcknowledging(let number):
            guard let index = index(number) else { return }
            let lease = try lease(index, store)
            lease.startAcknowledging()
            note(.acknowledged(upload: index, offset: lease.acknowledged))
        case .takeOver(let number):
            guard let index = index(number) else { return }
            try takeOver(index, store)
        case .release(let number):
            if let index = index(number) { uploads[index].lease = nil }
        case .stage(let number, let commits): try stage(number, commits: commits, store)
        case .publish(let number): try publish(number, store)
        case .publishTogether(let size): try publishTogether(size, store)
        case .process(let number): try process(number, store)
        case .refuse(let number):
            guard let index = index(number) else { return }
            let lease = try lease(index, store)
            note(.endBegan(upload: index))
            try lease.complete(with: Response(status: 400))
            note(.answered(upload: index, Response(status: 400)))
        case .invalidate(let number):
            guard let index = index(number) else { return }
            let lease = try lease(index, store)
            note(.endBegan(upload: index))
            try lease.invalidate(reason: "because")
            note(.gone(upload: index))
        case .cancel(let number):
            guard let index = index(number) else { return }
            note(.cancellationBegan(upload: index))
            try store.cancel(uploads[index].id, principal: Self.principal)
            note(.gone(upload: index))
        case .removeFile(let name):
            note(.removalBegan(name: name))
            try store.remove(Self.names[name])
            note(.removed(name: name))
        case .sweep(let seconds): sweep(seconds, store)
        case .restart:
            shut()
            // A clean stop loses no upload.
            for index in uploads.indices { note(.confirmed(upload: index)) }
            try open()
        }
    }

    private func index(_ number: Int) -> Int? { uploads.isEmpty ? nil : number % uploads.count }

    private func create(
        _ size: Int, _ name: Int, _ declaresLength: Bool, _ expires: Bool, _ shouldRecordAtOnce: Bool,
        on store: UploadStore
    ) throws(StoreError) {
        var generator = SeededGenerator(seed: seed &+ UInt64(uploads.count) &* 7919)
        let content = (0..<size).map { _ in UInt8.random(in: 1...255, using: &generator) }
        let expiresAt = expires ? now + 100 : nil
        let lease = try store.create(
            NewUpload(
                principal: Self.principal, method: .put, target: "/files/x",
                length: declaresLength ? Int64(size) : nil, digests: [.sha256], expiresAt: expiresAt),
            shouldRecordAtOnce: shouldRecordAtOnce)
        guard let id = lease.id else { return }
        uploads.append(Upload(id: id, content: content, name: name, expiresAt: expiresAt, lease: lease))
        note(.created(upload: uploads.count - 1, isRecorded: shouldRecordAtOnce))
    }

    private func lease(_ index: Int, _ store: UploadStore) throws(StoreError) -> UploadLease {
        if let lease = uploads[index].lease, lease.isCurrent { return lease }
        return try takeOver(index, store)
    }

    @discardableResult
    private func takeOver(_ index: Int, _ store: UploadStore) throws(StoreError) -> UploadLease {
        switch try store.takeOver(uploads[index].id, principal: Self.principal, waitForProcessing: .zero) {
        case .lease(let lease):
            uploads[index].lease = lease
            return lease
        case .complete(let record):
            if case .complete(let response) = record.phase { note(.answered(upload: index, response)) }
            throw .completed
        case .processing: throw .processing
        }
    }

    private func append(_ number: Int, _ count: Int, _ store: UploadStore) throws(StoreError) {
        guard let index = index(number) else { return }
        let lease = try lease(index, store)
        let start = Int(lease.received)
        try lease.append(uploads[index].content[start..<min(start + count, uploads[index].content.count)])
        note(.acknowledged(upload: index, offset: lease.acknowledged))
    }

    private func appendRest(_ index: Int, _ store: UploadStore) throws(StoreError) -> UploadLease {
        let lease = try lease(index, store)
        try lease.append(uploads[index].content[Int(lease.received)...])
        try lease.setLength(Int64(uploads[index].content.count))
        return lease
    }

    private func stage(_ number: Int, commits: Bool, _ store: UploadStore) throws(StoreError) {
        guard let index = index(number) else { return }
        let lease = try lease(index, store)
        let remaining = uploads[index].content[Int(lease.received)...].prefix(700)
        // Staged bytes that are discarded may extend beyond the end of the upload.
        let refuse = ArraySlice<UInt8>(repeating: 0, count: lease.record.length == nil ? 700 : remaining.count)
        try lease.beginStaging()
        try lease.append(commits ? remaining : refuse)
        if commits { try lease.commitStaged() } else { lease.discardStaged() }
    }

    private func publish(_ number: Int, _ store: UploadStore) throws(StoreError) {
        guard let index = index(number) else { return }
        let lease = try appendRest(index, store)
        note(.endBegan(upload: index))
        note(.publicationBegan(upload: index))
        let response = try lease.publish(.plain(Self.names[uploads[index].name]))
        note(.published(upload: index))
        note(.answered(upload: index, response))
    }

    private func publishTogether(_ size: Int, _ store: UploadStore) throws(StoreError) {
        var members: [(index: Int, lease: UploadLease)] = []
        for number in 0..<3 {
            try create(size + 700 * number, (size + number) % Self.names.count, true, false, false, on: store)
            let index = uploads.count - 1
            members.append((index, try appendRest(index, store)))
            note(.endBegan(upload: index))
            note(.publicationBegan(upload: index))
        }
        // The first synchronization waits until the other uploads are queued for the next one, or need no synchronization.
        let running = Monitor(members.count)
        recorder.runBeforeSynchronization {
            let end = SystemClock.deadline(in: .seconds(10))
            while store.waitingPublications < running.withLock({ $0 }) - 1, SystemClock.monotonicNanoseconds() < end {
                sched_yield()
            }
        }
        let responses = Monitor<[Int: Response]>([:])
        let threads = members.map { index, lease in
            let publication = Publication.plain(Self.names[uploads[index].name])
            return Result { () throws(Errno) in
                try WorkerThread(name: "publish") {
                    let response = try? lease.publish(publication)
                    responses.withLock { $0[index] = response }
                    running.withLock { $0 -= 1 }
                }
            }
        }
        for thread in threads { (try? thread.get())?.join() }
        recorder.runBeforeSynchronization {}
        for (index, response) in responses.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            note(.published(upload: index))
            note(.answered(upload: index, response))
        }
    }

    private func process(_ number: Int, _ store: UploadStore) throws(StoreError) {
        guard let index = index(number) else { return }
        let lease = try appendRest(index, store)
        note(.endBegan(upload: index))
        try lease.beginProcessing(shouldMarkDurably: true)
        note(.targetRan(upload: index))
        try lease.complete(with: Response(status: 202))
        note(.answered(upload: index, Response(status: 202)))
    }

    private func sweep(_ seconds: Int, _ store: UploadStore) {
        let now = clock.withLock { now in
            now += Int64(seconds)
            return now
        }
        note(.time(now))
        for (index, upload) in uploads.enumerated() where upload.expiresAt.map({ $0 <= now }) ?? false {
            note(.expired(upload: index))
        }
        // The record of an answered upload is removed some time later.
        if seconds > 0 {
            for index in uploads.indices where isAnswered(index) { note(.expired(upload: index)) }
        }
        _ = store.sweep()
    }

    private func isAnswered(_ index: Int) -> Bool {
        notes.contains {
            switch $0.note {
            case .endBegan(index), .cancellationBegan(index): true
            default: false
            }
        }
    }
}

extension Publication {
    static func plain(_ name: PublishedName) -> Publication {
        Publication(
            name: name, refused: Response(status: 409),
            response: { created, _ in Response(status: created ? 201 : 200) })
    }
}

extension UploadLease {
    func append(_ bytes: ArraySlice<UInt8>) throws(StoreError) {
        try Array(bytes).withUnsafeBytes { buffer in
            Result { () throws(StoreError) in try append(buffer) }
        }.get()
    }
}
