import SystemCalls

extension UploadStore {
    /// What became of an attempt to put bytes under their published name.
    enum Placement {
        case published(PublishedFile.Attributes)
        /// The name is not as it was when the decision was made.
        case occupied
        /// The bytes are neither here nor there.
        case lost
    }

    /// The file of a name; nil where there is none. Throws `targetIsDirectory` for anything else that has the name.
    func lookUp(_ name: PublishedName) throws(StoreError) -> PublishedBlob? {
        do throws(StoreError) {
            return try area.openPublished(name)
        } catch {
            switch error {
            case .notFound: return nil
            case .invalidState: throw .targetIsDirectory
            default: throw error
            }
        }
    }

    /// Carries an intent out, or finds that it has been. Safe to repeat from any point at which it was cut off.
    /// The path lock of the name is held, and the content is durable.
    func place(_ intent: PublicationIntent, from name: String, _ blob: (any Blob)?) throws(StoreError) -> Placement {
        do throws(StoreError) {
            let current = try lookUp(intent.name)
            if let current, current.identity == intent.identity {
                // Renamed before the interruption; a second name is what a file system without exclusive rename leaves.
                try translating("remove a second name") { () throws(Errno) in try area.remove(name) }
                try area.synchronizePublication(intent.name)
                return try lookUp(intent.name).map { .published($0.file.attributes) } ?? .lost
            }
            guard let blob = try existing(blob, name) else { return .lost }
            if let current, current.file.attributes.entityTag.opaque != intent.replaced { return .occupied }
            try translating("set the time of a publication") { () throws(Errno) in
                try blob.setModified(nextModification())
            }
            try area.publish(name, as: intent.name, replacing: current != nil)
            try area.synchronizePublication(intent.name)
            let attributes = try translating("read attributes") { () throws(Errno) in try blob.attributes() }
            return .published(attributes)
        } catch {
            switch error {
            case .preconditionFailed, .targetIsDirectory, .parentIsFile: return .occupied
            default: throw error
            }
        }
    }

    private func existing(_ blob: (any Blob)?, _ name: String) throws(StoreError) -> (any Blob)? {
        if let blob { return blob }
        return try translating("open the bytes of an upload") { () throws(Errno) -> (any Blob)? in
            do throws(Errno) {
                return try area.open(name)
            } catch {
                if error == .noSuchFile { return nil }
                throw error
            }
        }
    }

    /// The time now in nanoseconds since 1970, and never the same twice.
    private func nextModification() -> Int64 {
        lastModification.withLock { last in
            last = max(last + 1, SystemClock.realtimeNanoseconds())
            return last
        }
    }
}
