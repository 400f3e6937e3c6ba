import ResumableUpload
import UploadStorage

/// Opens the store after a crash and verifies that no acknowledged state was lost.
struct Judgment {
    private let history: History
    private let expectation: Expectation
    private let root: String
    private(set) var complaints: [String] = []

    init(_ history: History, at position: Int, root: String) {
        self.history = history
        self.root = root
        expectation = Expectation(history, at: position)
    }

    mutating func run() {
        checkDirectory(isRecovered: false)
        do throws(StoreError) {
            let store = try UploadStore.open(root: root, configuration: configuration)
            for name in History.names.indices { judgeFile(name, store) }
            for index in expectation.uploads.indices where expectation.uploads[index].isKnown {
                judgeUpload(index, store)
            }
            judgeSweep(store)
            store.close()
        } catch {
            return complain("the store does not start: \(error)")
        }
        checkDirectory(isRecovered: true)
    }

    /// Runs `onward check`, which must not change anything.
    private mutating func checkDirectory(isRecovered: Bool) {
        let begin = recorder.position
        do throws(StoreError) {
            let check = try DataDirectoryCheck(root: root)
            var findings: [CheckFinding] = []
            _ = try check.run { findings.append($0) }
            for finding in findings where finding.kind.isDamage || isRecovered {
                complain("the check \(isRecovered ? "after" : "before") recovery found \(finding)")
            }
        } catch {
            // There may be none as yet.
            if case .unusableRoot = error, !isRecovered { return }
            complain("the check fails: \(error)")
        }
        if recorder.position != begin { complain("the check has changed something") }
    }

    private var configuration: StoreConfiguration {
        let now = expectation.now
        return History.configuration { now }
    }

    private mutating func complain(_ text: String) { complaints.append(text) }

    private mutating func judgeFile(_ name: Int, _ store: UploadStore) {
        let allowed = expectation.contents[name]
        let path = History.names[name]
        do throws(StoreError) {
            let content = try store.publishedFile(path).readAll()
            let isAllowed = allowed.contains { $0.map { history.uploads[$0].content == content } ?? false }
            if !isAllowed {
                let owner = history.uploads.firstIndex { $0.content == content }
                complain(
                    "the file \(path) of \(content.count) bytes is \(owner.map { "upload \($0)'s" } ?? "no upload's")"
                        + ", allowed: \(allowed)")
            }
        } catch {
            guard error == .notFound || error == .parentIsFile else {
                return complain("the file \(path): \(error)")
            }
            if !allowed.contains(nil) { complain("the file \(path) is gone, allowed: \(allowed)") }
        }
    }

    private mutating func judgeUpload(_ index: Int, _ store: UploadStore) {
        let upload = history.uploads[index]
        let expected = expectation.uploads[index]
        do throws(StoreError) {
            switch try store.takeOver(upload.id, principal: History.principal, waitForProcessing: .zero) {
            case .processing: complain("upload \(index) is stuck")
            case .complete(let record):
                guard case .complete(let answer) = record.phase else { return complain("complete without an answer") }
                if expected.mustBeGone { complain("upload \(index) is back: \(answer.status)") }
                if let told = expected.answer, told != answer { complain("upload \(index) answers \(answer.status)") }
                if !expected.mayEnd { complain("upload \(index) has ended by itself: \(answer.status)") }
                if answer.status == 500 && !expected.targetHasRun && !mayHaveProcessed(index) {
                    complain("upload \(index) was interrupted before its target ran")
                }
                if answer.status == 409 { complain("upload \(index) lost its bytes on the way to its name") }
            case .lease(let lease): try judge(lease, index, store)
            }
        } catch {
            let isOver = expected.mustBeGone || expected.mayEnd || expected.mayBeSwept
            switch error {
            case .notFound where isOver: break
            case .gone(let reason) where isOver && reason != "acknowledged bytes were lost": break
            default: complain("upload \(index): \(error)")
            }
        }
    }

    /// Whether the history has the target run at all: the mark may be durable before that is recorded.
    private func mayHaveProcessed(_ index: Int) -> Bool {
        history.notes.contains { if case .targetRan(index) = $0.note { true } else { false } }
    }

    private mutating func judge(_ lease: UploadLease, _ index: Int, _ store: UploadStore) throws(StoreError) {
        let upload = history.uploads[index]
        let expected = expectation.uploads[index]
        if expected.answer != nil { complain("upload \(index) has forgotten its answer") }
        if expected.mustBeGone { complain("upload \(index) is back") }
        if expected.targetHasRun { complain("the target of upload \(index) would run twice") }
        if lease.acknowledged < expected.offset {
            complain("upload \(index) has \(lease.acknowledged) bytes, and \(expected.offset) were told")
        }
        let received = Int(lease.received)
        let content = try lease.readAll()
        if received > upload.content.count || content != Array(upload.content[..<received]) {
            return complain("upload \(index) has other bytes than it was sent")
        }
        try lease.append(upload.content[received...])
        try lease.setLength(Int64(upload.content.count))
        let response = try lease.publish(.plain(History.names[upload.name]))
        if ![200, 201].contains(response.status) { complain("upload \(index) cannot be published: \(response)") }
        if try store.publishedFile(History.names[upload.name]).readAll() != upload.content {
            complain("upload \(index) was published as another file")
        }
    }

    private mutating func judgeSweep(_ store: UploadStore) {
        let first = store.sweep()
        if !first.failures.isEmpty { complain("the sweep found \(first)") }
        let second = store.sweep()
        if second != SweepReport() { complain("the second sweep found \(second)") }
        // Uploads whose names were not reported exist until they expire.
        let untold = expectation.uploads.count { !$0.isKnown }
        if store.usage(of: History.principal).uploads > untold { complain("uploads are counted that are none") }
    }
}

extension UploadLease {
    func readAll() throws(StoreError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(received) + 1)
        let count = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(StoreError) in try read(into: buffer, at: 0) }
        }.get()
        return Array(bytes[..<count])
    }
}

extension PublishedFile {
    func readAll() throws(StoreError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(attributes.size) + 1)
        let count = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(StoreError) in try read(into: buffer, at: 0) }
        }.get()
        return Array(bytes[..<count])
    }
}
