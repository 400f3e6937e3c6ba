import ResumableUpload
import SystemCalls

extension OpenUpload {
    private static let maximumAttempts = 1000

    /// Makes the bytes a published file. From the durable intent on it will be carried to its end, whatever happens.
    func publish(_ publication: Publication, as epoch: Int64) throws(StoreError) -> FinalResponse {
        if monitor.withLock({ $0.epoch == epoch && $0.activity == .processing }) {
            _ = try acknowledge(as: epoch)
        } else {
            try beginProcessing(marksDurably: false, as: epoch)
        }
        try cutOff(as: epoch)
        do throws(StoreError) {
            return try publishUnderSomeName(publication, as: epoch)
        } catch {
            // Decided, but not brought to its end: the next one who takes the upload over does that.
            update { state in
                guard state.unsettled != nil else { return }
                state.activity = .idle
                // The holder learns it from the error.
                _ = state.revoke()
            }
            throw error
        }
    }

    /// The blob becomes the file, so that it must end where the received bytes end.
    private func cutOff(as epoch: Int64) throws(StoreError) {
        let (blob, received) = monitor.withLock { ($0.blob, $0.received) }
        guard let blob else { throw .superseded }
        try translating("cut off what does not count") { () throws(Errno) in
            if try blob.size() != received {
                try blob.truncate(to: received)
                if store.writesBack { try synchronize(blob, includingName: false, as: epoch) }
            }
            // Nothing was acknowledged of an empty upload, but recovery has to find its bytes.
            if received == 0 && !isTransient && store.writesBack {
                try synchronize(blob, includingName: true, as: epoch)
            }
        }
    }

    /// After a failure the bytes are not believed when they are asked for again.
    private func synchronize(_ blob: any Blob, includingName: Bool, as epoch: Int64) throws(Errno) {
        do throws(Errno) {
            try store.observing(.content) { () throws(Errno) in try blob.synchronize(includingName: includingName) }
        } catch {
            synchronizationFailed(askedBy: epoch)
            throw error
        }
    }

    private func publishUnderSomeName(
        _ publication: Publication, as epoch: Int64
    ) throws(StoreError) -> FinalResponse {
        var name = publication.name
        for attempt in 1...Self.maximumAttempts {
            let response = try store.withName(name, for: id) { () throws(StoreError) in
                do throws(StoreError) { return try publish(publication, under: name, as: epoch) } catch {
                    // While the name is locked, so that nobody else finds it free.
                    if isTransient { leaveToCatalog() }
                    throw error
                }
            }
            if let response { return response }
            guard let next = publication.alternatives(attempt) else { break }
            name = next
        }
        return try giveUp(publication, because: .noFreeName)
    }

    /// Nil where another name has to be tried. The path lock of the name is held.
    private func publish(
        _ publication: Publication, under name: PublishedName, as epoch: Int64
    ) throws(StoreError) -> FinalResponse? {
        let (blob, row) = monitor.withLock { ($0.blob, $0.row) }
        guard let blob, let row else { throw .superseded }
        let identity = try translating("identify") { () throws(Errno) in try blob.identity() }
        for _ in 1...Self.maximumAttempts {
            let current: PublishedBlob?
            do throws(StoreError) {
                current = try store.lookUp(name)
            } catch {
                if [.targetIsDirectory, .targetIsSpecial].contains(error) && !publication.replaces { return nil }
                return try giveUp(publication, because: error)
            }
            if current != nil && !publication.replaces { return nil }
            if let refusal = publication.condition(current?.file.attributes) {
                try finish(with: refusal, publishedAs: nil)
                return refusal
            }
            let intent = PublicationIntent(
                name: name, replaced: current?.file.attributes.entityTag.opaque, identity: identity,
                fields: publication.fields,
                response: publication.response(current == nil, name), refused: publication.refused)
            try store.area.requirePublishable(name)
            // A new file that has no row can only vanish. What replaces a file could take that with it.
            if !isTransient || current != nil || monitor.withLock({ $0.isRecorded }) {
                try decide(intent, publication.validated, as: epoch)
            }
            switch try store.place(intent, from: row.blob, blob) {
            case .published(let attributes, let leavesName):
                let response = publication.validated(intent.response, attributes)
                try finish(
                    with: response,
                    publishedAs: FileRecord(intent, principal: row.upload.principal, attributes: attributes),
                    leavesName: leavesName)
                return response
            case .occupied:
                // Somebody outside put a file there in between: judge again.
                continue
            case .lost:
                if isTransient { try removeRecord() } else { try invalidateLost() }
                throw .stateLost
            case .failed(let error):
                try fail(intent, row)
                throw error
            }
        }
        return try giveUp(publication, because: .noFreeName)
    }

    private func decide(
        _ intent: PublicationIntent,
        _ validated: @escaping @Sendable (FinalResponse, PublishedFile.Attributes) -> FinalResponse, as epoch: Int64
    ) throws(StoreError) {
        if isTransient && !monitor.withLock({ $0.isRecorded }) {
            try record(intent, as: epoch)
        } else {
            try store.catalog.commit(.intend(id, epoch: epoch, intent), of: id) { $0?.intent == intent }
        }
        let abandoned = update { state in
            defer { state.unsettled = Unsettled(intent: intent, validated: validated) }
            return state.unsettled?.intent.name
        }
        if let abandoned { store.pathLocks.clearUnsettled(abandoned, id) }
        store.pathLocks.setUnsettled(intent.name, id)
    }

    /// Gives bytes without an upload a row, so that a failure or a crash on the way is dealt with like that of an upload.
    private func record(_ intent: PublicationIntent, as epoch: Int64) throws(StoreError) {
        guard var row = monitor.withLock({ state in state.row?.advanced(to: state.received) }) else {
            throw .superseded
        }
        row.epoch = epoch
        row.phase = .processing
        row.intent = intent
        do throws(StoreError) {
            try store.catalog.commit(.insert(row), of: id) { $0?.intent == intent }
        } catch {
            _ = try? store.catalog.commit(.delete([CatalogChange.Removal(id: id, epoch: epoch)]))
            throw error
        }
        update { $0.isRecorded = true }
    }

    /// Removes that row. Nothing is to be done for it any more.
    func removeRecord() throws(StoreError) {
        let (isRecorded, epoch) = monitor.withLock { ($0.isRecorded, $0.epoch) }
        guard isRecorded else { return }
        try store.catalog.commit(.delete([CatalogChange.Removal(id: id, epoch: epoch)]), of: id) { $0 == nil }
        let decided = update { state in
            defer { state.unsettled = nil }
            state.isRecorded = false
            return state.unsettled?.intent.name
        }
        if let decided { store.pathLocks.clearUnsettled(decided, id) }
    }

    /// Leaves that row, and the bytes, to the sweep, to the next publication under the name, or to the next start.
    private func leaveToCatalog() {
        let left = update { state -> (row: CatalogRow, surplus: Int64)? in
            guard state.unsettled != nil, let row = state.row else { return nil }
            defer {
                state.row = nil
                state.blob = nil
                state.unsettled = nil
                state.reserved = 0
                state.activity = .idle
                _ = state.revoke()
            }
            return (row, state.reserved - state.received)
        }
        guard let (row, surplus) = left else { return }
        // From now on it is counted as an upload, and its row protects the bytes.
        store.ledger.keep(row.upload.principal, releasing: surplus)
        store.registry.remove(self)
        store.registry.removeNewBlob(row.blob)
    }

    /// Before the decision an error leaves everything as it was. After it, the refusal is the end.
    private func giveUp(_ publication: Publication, because error: StoreError) throws(StoreError) -> FinalResponse {
        guard !isTransient, monitor.withLock({ $0.unsettled != nil }) else {
            try removeRecord()
            throw error
        }
        try finish(with: publication.refused, publishedAs: nil)
        return publication.refused
    }

    /// Brings to its end what an interruption left, as the one who set `activity` to settling.
    func settle() throws(StoreError) {
        do throws(StoreError) {
            let (row, unsettled) = monitor.withLock { ($0.row, $0.unsettled) }
            guard let row else { throw .notFound }
            if let unsettled {
                try store.pathLocks.withLock(unsettled.intent.name) { () throws(StoreError) in
                    if unsettled.hasFailed { try fail(unsettled.intent, row) } else { try settle(unsettled, of: row) }
                }
            } else {
                // The target resource was at work, and must not run again.
                try finish(with: store.configuration.interruptedResponse, publishedAs: nil)
            }
        } catch {
            update { $0.activity = .idle }
            throw error
        }
    }

    private func settle(_ unsettled: Unsettled, of row: CatalogRow) throws(StoreError) {
        let intent = unsettled.intent
        switch try store.place(intent, from: row.blob, nil) {
        case .published(let attributes, let leavesName):
            try finish(
                with: unsettled.validated(intent.response, attributes),
                publishedAs: FileRecord(intent, principal: row.upload.principal, attributes: attributes),
                leavesName: leavesName)
        case .occupied:
            try finish(with: intent.refused, publishedAs: nil)
        case .lost:
            try invalidateLost()
        case .failed:
            try fail(intent, row)
        }
    }

    private func invalidateLost() throws(StoreError) {
        try invalidate(because: Self.lossReason)
        store.finished.addLost()
        store.tellLoss(of: id)
    }

    /// Ends the upload, whose file could not be made durable: what of it is on the disk is unknown.
    ///
    /// The failure is recorded before a name changes, so that a publication of which some names are withdrawn is never
    /// taken for one to carry out. The bytes are removed last: until the names are durable, theirs may be that of the file
    /// that they had replaced.
    private func fail(_ intent: PublicationIntent, _ row: CatalogRow) throws(StoreError) {
        store.failedPublications.insert(id)
        if isTransient && !monitor.withLock({ $0.isRecorded }) {
            defer { store.failedPublications.remove(id) }
            return try store.withdraw(intent, from: row.blob, of: id)
        }
        let epoch = update { state in
            state.unsettled?.hasFailed = true
            return state.epoch
        }
        if !row.isWithdrawn {
            try store.catalog.commit(.withdraw(id, epoch: epoch), of: id) { $0?.isWithdrawn ?? false }
            update { $0.row?.isWithdrawn = true }
        }
        try store.withdraw(intent, from: row.blob, of: id)
        if isTransient {
            try removeRecord()
        } else {
            try invalidate(because: "its file could not be made durable")
        }
        store.failedPublications.remove(id)
    }
}
