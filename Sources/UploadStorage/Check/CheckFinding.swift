/// A check of the storage of uploads and files, which changes nothing.
package protocol StoreCheck: AnyObject {
    /// The numbers of the last ``run(_:)``, or of the current one so far.
    var summary: CheckSummary { get set }
    /// Checks everything and reports the findings.
    func run(_ report: (CheckFinding) -> Void) throws(StoreError) -> CheckSummary
    /// Reads every published file to its end and calls `body` with its SHA-256 (32 bytes).
    /// - Returns: the numbers of the last ``run(_:)`` with those of this call.
    func forEachDigest(
        _ body: (PublishedName, [UInt8]) -> Void, failures report: (CheckFinding) -> Void
    ) throws(StoreError) -> CheckSummary
}

extension StoreCheck {
    /// Counts and reports a finding.
    package func found(
        _ kind: CheckFinding.Kind, _ path: String, _ detail: String, _ report: (CheckFinding) -> Void
    ) {
        let finding = CheckFinding(kind, path, detail)
        summary.count(finding)
        report(finding)
    }
}

/// A finding of a check of a data directory, or of a database and an object storage.
package struct CheckFinding: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable {
        /// SQLite's own check of the database fails.
        case catalogDamaged = "catalogue-damaged"
        /// The row of an upload cannot be read.
        case rowUnreadable = "row-unreadable"
        /// The bytes of an unfinished upload are missing.
        case bytesMissing = "bytes-missing"
        /// An unfinished upload has fewer bytes than were acknowledged.
        case bytesShort = "bytes-short"
        /// A publication was decided, and its bytes have neither their old nor their published name.
        case publicationLost = "publication-lost"
        /// The size of a published file has changed, but its modification time has not.
        case fileResized = "file-resized"
        /// A published file cannot be read to its end.
        case fileUnreadable = "file-unreadable"

        /// An older version wrote the catalog; the next start rewrites it.
        case catalogOlder = "catalog-older"
        /// An upload has more bytes than were acknowledged; the next start removes them.
        case bytesUnacknowledged = "bytes-unacknowledged"
        /// Bytes belong to no unfinished upload; the next start removes them. In a database and an object storage: objects
        /// or pieces that no upload or file needs.
        case bytesUnknown = "bytes-unknown"
        /// An object has not been needed for longer than servers keep such objects.
        case garbageOverdue = "garbage-overdue"
        /// The totals that the last stop saved differ from the totals of the uploads and files.
        case totalsWrong = "totals-wrong"
        /// A published file was changed or replaced by hand; its metadata are no longer used.
        case fileChanged = "file-changed"
        /// A published file was removed by hand; the server's next check of all files removes it from the quota.
        case fileRemoved = "file-removed"
        /// A setting is off in the database server. Without it a crash of its machine can lose acknowledged data.
        case settingOff = "setting-off"

        /// Whether acknowledged data was lost. Other findings are the results of crashes and of changes by hand.
        package var isDamage: Bool {
            switch self {
            case .catalogDamaged, .rowUnreadable, .bytesMissing, .bytesShort, .publicationLost, .fileResized,
                .fileUnreadable:
                true
            case .catalogOlder, .bytesUnacknowledged, .bytesUnknown, .garbageOverdue, .totalsWrong, .fileChanged,
                .fileRemoved, .settingOff:
                false
            }
        }
    }

    package var kind: Kind
    /// The path in the data directory, or the key of an object, to which the finding belongs.
    package var path: String
    /// The explanation for the operator.
    package var detail: String

    package init(_ kind: Kind, _ path: String, _ detail: String) {
        (self.kind, self.path, self.detail) = (kind, path, detail)
    }
}

/// The numbers of a check.
package struct CheckSummary: Sendable, Hashable {
    package var uploads = 0
    package var unfinished = 0
    /// The number of published files with a record.
    package var files = 0
    package var findings = 0
    /// The number of findings that are damage.
    package var damages = 0

    package init() {}

    package mutating func count(_ finding: CheckFinding) {
        findings += 1
        if finding.kind.isDamage { damages += 1 }
    }
}
