import ResumableUpload
import UploadStorage

/// Opens the store after a crash and verifies that no acknowledged state was lost.
struct RecoveryCheck {
    private let history: History
    private let expectation: Expectation
    private let root: String
    private(set) var problems: [String] = []

    init(_ history: History, at position: Int, root: String) {
        self.history = history
        self.root = root
        expectation = Expectation(history, at: position)
    }

    mutating func run() {
        checkDirectory(isRecovered: false)
        do throws(StoreError) {
            let store = try UploadStore.open(root: root, configuration: configuration)
            for name in History.names.indices { verifyFile(name, store) }
            for index in expectation.uploads.indices where expectation.uploads[index].isKnown {
                verifyUpload(index, store)
            }
            verifySweep(store)
            store.close()
        } catch {
            return report("the store does not start: \(error)")
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
                report("the check \(isRecovered ? "after" : "before") recovery found \(finding)")
            }
        } catch {
            // The crash may have happened before the data directory was created.
            if case .unusableRoot = error, !isRecovered { return }
            report("the check fails: \(error)")
        }
        if recorder.position != begin { report("the check has changed the directory") }
    }

    private var configuration: StoreConfiguration {
        let now = expectation.now
        return History.configuration { now }
    }

    private mutating func report(_ text: String) { problems.append(text) }

    private mutating func verifyFile(_ name: Int, _ store: UploadStore) {
        let allowed = expectation.contents[name]
        let path = History.names[name]
        do throws(StoreError) {
            let content = try store.publishedFile(path).readAll()
            let isAllowed = allowed.contains { $0.map { history.uploads[$0].content == content } ?? false }
            if !isAllowed {
                let owner = history.uploads.firstIndex { $0.content == content }
                report(
                    "the file \(path) of \(content.count) bytes is \(owner.map { "upload \($0)'s" } ?? "no upload's")"
                        + ", allowed: \(allowed)")
            }
        } catch {
            guard error == .notFound || error == .parentIsFile else {
                return report("the file \(path): \(error)")
            }
            if !allowed.contains(nil) { report("the file \(path) is gone, allowed: \(allowed)") }
        }
    }

    private mutating func verifyUpload(_ index: Int, _ store: UploadStore) {
        let upload = history.uploads[index]
        let expected = expectation.uploads[index]
        do throws(StoreError) {
            switch try store.takeOver(upload.id, principal: History.principal, waitForProcessing: .zero) {
            case .processing: report("upload \(index) is still being processed")
            case .complete(let record):
                guard case .complete(let response) = record.phase else { return report("upload \(index): no response") }
                if expected.mustBeGone { report("upload \(index) exists again: \(response.status)") }
                if let sent = expected.response, sent != response {
                    report("upload \(index) has another stored response: \(response.status)")
                }
                if !expected.mayEnd { report("upload \(index) ended without a request: \(response.status)") }
                if response.status == 500 && !expected.hasTargetRun && !mayHaveProcessed(index) {
                    report("upload \(index) was interrupted before its target ran")
                }
                if response.status == 409 { report("upload \(index) lost its bytes during publication") }
            case .lease(let lease): try verify(lease, index, store)
            }
        } catch {
            let isOver = expected.mustBeGone || expected.mayEnd || expected.mayBeSwept
            let mayBeMissing = expected.mustBeGone || expected.mayBeCanceled || expected.mayBeSwept
            switch error {
            case .notFound where isOver && mayBeMissing || !expected.isConfirmed: break
            case .gone(let reason) where isOver && reason != "acknowledged bytes were lost": break
            default: report("upload \(index): \(error)")
            }
        }
    }

    /// Whether the target runs anywhere in the history: the mark may be durable before the run is recorded.
    private func mayHaveProcessed(_ index: Int) -> Bool {
        history.notes.contains { if case .targetRan(index) = $0.note { true } else { false } }
    }

    private mutating func verify(_ lease: UploadLease, _ index: Int, _ store: UploadStore) throws(StoreError) {
        let upload = history.uploads[index]
        let expected = expectation.uploads[index]
        if expected.response != nil { report("upload \(index) lost its stored response") }
        if expected.mustBeGone { report("upload \(index) exists again") }
        if expected.hasTargetRun { report("the target of upload \(index) would run twice") }
        if lease.acknowledged < expected.offset {
            report("upload \(index) has \(lease.acknowledged) bytes, but \(expected.offset) were reported")
        }
        let received = Int(lease.received)
        let content = try lease.readAll()
        if received > upload.content.count || content != Array(upload.content[..<received]) {
            return report("the bytes of upload \(index) are not those that were sent")
        }
        try lease.append(upload.content[received...])
        try lease.setLength(Int64(upload.content.count))
        let response = try lease.publish(.plain(History.names[upload.name]))
        if ![200, 201].contains(response.status) { report("upload \(index) cannot be published: \(response)") }
        if try store.publishedFile(History.names[upload.name]).readAll() != upload.content {
            report("upload \(index) was published with other content")
        }
    }

    private mutating func verifySweep(_ store: UploadStore) {
        let first = store.sweep()
        if !first.failures.isEmpty { report("the sweep found \(first)") }
        let second = store.sweep()
        if second != SweepReport() { report("the second sweep found \(second)") }
        // Uploads whose URLs were not reported exist until they expire.
        let unreported = expectation.uploads.count { !$0.isKnown }
        if store.usage(of: History.principal).uploads > unreported { report("the usage counts missing uploads") }
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
