import SystemCalls

extension UploadStore {
    private static let recoveryPage = 200

    /// Ends what was begun when the last process ended. Nothing else has to be done before the store is used.
    func recover() throws(StoreError) {
        var last: UploadID?
        while true {
            let page = try catalog.processing(after: last, limit: Self.recoveryPage)
            guard let next = page.last else { return }
            for id in page { try recover(id) }
            last = next
        }
    }

    private func recover(_ id: UploadID) throws(StoreError) {
        do throws(StoreError) {
            try registry.withUpload(id) { (upload) throws(StoreError) in
                _ = try upload.claim(principal: nil, until: SystemClock.deadline(in: .seconds(60))) { _ in () }
            }
        } catch {
            // One upload that cannot be brought to its end is no reason not to start: the sweep tries again.
            if let intent = (try? catalog.row(id))?.intent { context.pathLocks.setUnsettled(intent.name, id) }
        }
    }
}
