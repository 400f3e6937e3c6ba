import ResumableUpload

extension UploadResumption {
    /// Whether a later process gains nothing by knowing this instead of `other`: the offset is asked for anyhow, and a
    /// lifetime that is told again counts down.
    func saysTheSame(as other: UploadResumption) -> Bool {
        var left = self
        var right = other
        left.acknowledged = 0
        right.acknowledged = 0
        left.limits.maxAge = nil
        right.limits.maxAge = nil
        let moved = (left.expires ?? 0) - (right.expires ?? 0)
        guard (left.expires == nil) == (right.expires == nil), abs(moved) <= 5 else { return false }
        left.expires = nil
        right.expires = nil
        return left == right
    }
}
