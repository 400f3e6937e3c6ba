import ResumableUpload

/// What resume data contains of an upload.
struct UploadCheckpoint: Sendable, Hashable, Codable {
    var resumption: UploadResumption
    var source: SourceRecord

    var isValid: Bool {
        let maximum = UploadLimits.largestInteger
        guard RequestURI(resumption.uri)?.text == resumption.uri, (0...maximum).contains(resumption.acknowledged),
            source.isValid
        else { return false }
        if let length = resumption.length {
            guard (0...maximum).contains(length), resumption.acknowledged <= length,
                source.size == nil || source.size == length
            else { return false }
        }
        let limits = resumption.limits
        let values = [limits.maxSize, limits.minSize, limits.maxAppendSize, limits.minAppendSize, limits.maxAge]
        return values.allSatisfy { $0.map { (0...maximum).contains($0) } ?? true } && (resumption.expires ?? 0) >= 0
    }
}

extension UploadCheckpoint: TransferCheckpoint {
    var content: ResumeRecord.Content { .upload(self) }

    /// The server is asked for the offset in any case, and its lifetime counts down in every response: neither alone is a
    /// reason.
    func supersedes(_ handedOut: UploadCheckpoint, age: Int64) -> Bool {
        var new = self
        var old = handedOut
        new.resumption.acknowledged = 0
        old.resumption.acknowledged = 0
        new.resumption.limits.maxAge = nil
        old.resumption.limits.maxAge = nil
        if let expires = new.resumption.expires, let before = old.resumption.expires, abs(expires - before) <= 5 {
            new.resumption.expires = before
        }
        return new != old
    }
}
