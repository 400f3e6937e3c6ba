/// Something that a check of a data directory found.
package struct CheckFinding: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable {
        /// SQLite's own check of the database fails.
        case catalogDamaged = "catalogue-damaged"
        /// The row of an upload cannot be read.
        case rowUnreadable = "row-unreadable"
        /// The bytes of an unfinished upload are gone.
        case bytesMissing = "bytes-missing"
        /// Fewer bytes are there than were acknowledged.
        case bytesShort = "bytes-short"
        /// A publication was decided, and its bytes are neither here nor there.
        case publicationLost = "publication-lost"
        /// A published file is still the same, but its size has changed.
        case fileResized = "file-resized"
        /// A published file cannot be read to its end.
        case fileUnreadable = "file-unreadable"

        /// The catalog is that of an older version; the next start rewrites it.
        case catalogOlder = "catalog-older"
        /// More bytes are there than were acknowledged; the next start cuts them off.
        case bytesUnacknowledged = "bytes-unacknowledged"
        /// Bytes of no unfinished upload; the next start removes them.
        case bytesUnknown = "bytes-unknown"
        /// What the last stop saved of quotas and counts is not what the uploads and files add up to.
        case totalsWrong = "totals-wrong"
        /// A published file was changed or replaced by hand; its metadata no longer count.
        case fileChanged = "file-changed"
        /// A published file was removed by hand; the quota forgets it soon.
        case fileRemoved = "file-removed"

        /// Whether something was lost that had been promised. Other findings are what crashes and people leave behind.
        package var isDamage: Bool {
            switch self {
            case .catalogDamaged, .rowUnreadable, .bytesMissing, .bytesShort, .publicationLost, .fileResized,
                .fileUnreadable:
                true
            case .catalogOlder, .bytesUnacknowledged, .bytesUnknown, .totalsWrong, .fileChanged, .fileRemoved: false
            }
        }
    }

    package var kind: Kind
    /// What it is about: a path in the data directory.
    package var path: String
    /// For the operator.
    package var detail: String
}

/// What a check of a data directory has looked at.
package struct CheckSummary: Sendable, Hashable {
    package var uploads = 0
    package var unfinished = 0
    /// Published files of which there is a record.
    package var files = 0
    package var findings = 0
    /// How many of the findings are damage.
    package var damages = 0
}
