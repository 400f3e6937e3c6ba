import ResumableUpload

/// What has to be known of an upload to resume it.
struct UploadRecord: Sendable, Hashable, Codable {
    var resumption: UploadResumption
    var source: SourceRecord

    var isValid: Bool {
        let most = UploadLimits.largestInteger
        guard RequestURI(resumption.uri)?.text == resumption.uri, (0...most).contains(resumption.acknowledged),
            source.isValid
        else { return false }
        if let length = resumption.length {
            guard (0...most).contains(length), resumption.acknowledged <= length,
                source.size == nil || source.size == length
            else { return false }
        }
        let limits = resumption.limits
        let told = [limits.maxSize, limits.minSize, limits.maxAppendSize, limits.minAppendSize, limits.maxAge]
        return told.allSatisfy { $0.map { (0...most).contains($0) } ?? true } && (resumption.expires ?? 0) >= 0
    }
}
