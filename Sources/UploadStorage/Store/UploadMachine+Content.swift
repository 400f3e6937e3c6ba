// The bytes that a lease writes, and the length.
extension UploadMachine {
    /// - Returns: the end of `count` more bytes.
    func end(ofAppending count: Int, as lease: Int64) throws(StoreError) -> Int64 {
        try require(lease)
        guard activity == .idle, hasBytes else { throw .invalidState("the upload accepts no bytes now") }
        let (end, overflow) = written.addingReportingOverflow(Int64(count))
        if let length, overflow || end > length { throw .lengthExceeded(length: length) }
        return end
    }

    /// The number of bytes that have to be reserved before bytes up to this end are appended. The bytes of an upload of
    /// known length are reserved with the length.
    func missingReservation(upTo end: Int64) -> Int64 { length == nil ? max(0, end - reserved) : 0 }

    mutating func reserve(_ bytes: Int64) { reserved += bytes }

    mutating func append(_ count: Int) {
        written += Int64(count)
        if !isStaging { received = written }
    }

    /// The last bytes are written: from now on other requests wait. Staged bytes still have to be verified.
    mutating func endContent() {
        activity = isStaging ? .settling : .processing
        processor = epoch
    }

    mutating func beginStaging(as lease: Int64) throws(StoreError) {
        try require(lease)
        if isStaging { throw .invalidState("staging has begun already") }
        isStaging = true
    }

    mutating func commitStaged(as lease: Int64) throws(StoreError) {
        try require(lease)
        isStaging = false
        received = written
        if activity == .settling { activity = .processing }
    }

    /// - Returns: whether the caller must truncate the bytes after `received`.
    mutating func discardStaged(as lease: Int64) -> Bool {
        guard refusal(of: lease) == nil else { return false }
        // While the lease is held, no other thread settles the upload.
        if isStaging && activity == .settling { activity = .idle }
        return dropStaged()
    }

    mutating func dropStaged() -> Bool {
        guard isStaging else { return false }
        isStaging = false
        written = received
        return true
    }

    /// - Returns: the bytes that have to be reserved first; nil if the length is known already.
    func reservation(forLength length: Int64, as lease: Int64) throws(StoreError) -> Int64? {
        try require(lease)
        if self.length == length { return nil }
        guard self.length == nil, length >= 0, length >= written else {
            throw .invalidState("the length contradicts an earlier length or the received bytes")
        }
        return max(0, length - reserved)
    }

    mutating func setLength(_ length: Int64) {
        self.length = length
        if isRecorded { isRowCurrent = false }
    }
}
