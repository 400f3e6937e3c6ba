/// All SQL of the catalog.
enum CatalogSQL {
    /// "Onwd": identifies the file as a catalog of Onward (sqlite.org/pragma.html#pragma_application_id).
    static let applicationID: Int64 = 0x4F6E_7764

    /// One step of the schema.
    enum Migration {
        case script(String)
        /// Removes the fields of requests that older versions stored although they are not needed: see
        /// ``CatalogMigration``.
        case removeUnneededFields
        /// Copies all rows into new tables, and returns the space of the old tables to the file system.
        case rebuild(String)
    }

    /// Steps of the schema in order; `user_version` counts the completed steps. Add new steps at the end.
    static let migrations: [Migration] = [
        // The tables of uploads, files and marks.
        .script(
            """
            CREATE TABLE uploads (
                id BLOB NOT NULL PRIMARY KEY,
                blob TEXT NOT NULL UNIQUE,
                principal TEXT NOT NULL,
                creation BLOB NOT NULL,
                created_at INTEGER NOT NULL,
                expires_at INTEGER,
                epoch INTEGER NOT NULL,
                "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
                length INTEGER,
                phase INTEGER NOT NULL,
                response BLOB,
                reason TEXT,
                intent BLOB,
                digests BLOB NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX uploads_by_expiry ON uploads (expires_at) WHERE expires_at IS NOT NULL;
            CREATE INDEX uploads_unfinished ON uploads (phase) WHERE phase < 2;
            CREATE TABLE files (
                name TEXT NOT NULL PRIMARY KEY,
                principal TEXT NOT NULL,
                size INTEGER NOT NULL,
                identity TEXT NOT NULL,
                modified INTEGER NOT NULL,
                fields BLOB NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE marks (name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
            """),
        .removeUnneededFields,
        // Separate indexes for the expiry of unfinished and of finished uploads, and a table for the totals that a
        // clean stop saves.
        .script(
            """
            DROP INDEX uploads_by_expiry;
            CREATE INDEX unfinished_by_expiry ON uploads (expires_at) WHERE phase < 2 AND expires_at IS NOT NULL;
            CREATE INDEX finished_by_expiry ON uploads (expires_at) WHERE phase >= 2;
            CREATE TABLE usage (
                principal TEXT NOT NULL PRIMARY KEY,
                uploads INTEGER NOT NULL,
                reserved INTEGER NOT NULL,
                published INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
            """),
        // Rows in the order of their insertion: a row that is inserted or expires changes one page of the table, and one
        // page of an index that has only the ids. The names of files in `uploads/` are needed only for unfinished
        // uploads.
        .rebuild(
            """
            CREATE TABLE numbered_uploads (
                number INTEGER PRIMARY KEY,
                id BLOB NOT NULL UNIQUE,
                blob TEXT NOT NULL,
                principal TEXT NOT NULL,
                creation BLOB NOT NULL,
                created_at INTEGER NOT NULL,
                expires_at INTEGER,
                epoch INTEGER NOT NULL,
                "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
                length INTEGER,
                phase INTEGER NOT NULL,
                response BLOB,
                reason TEXT,
                intent BLOB,
                digests BLOB NOT NULL
            ) STRICT;
            INSERT INTO numbered_uploads (\(columns), principal) SELECT \(columns), principal FROM uploads;
            DROP TABLE uploads;
            ALTER TABLE numbered_uploads RENAME TO uploads;
            CREATE UNIQUE INDEX unfinished_by_blob ON uploads (blob) WHERE phase < 2;
            CREATE INDEX unfinished_by_phase ON uploads (phase, id) WHERE phase < 2;
            CREATE INDEX unfinished_by_expiry ON uploads (expires_at) WHERE phase < 2 AND expires_at IS NOT NULL;
            CREATE INDEX finished_by_expiry ON uploads (expires_at) WHERE phase >= 2;
            """),
        // The outbox: events that are neither delivered nor dropped. The index is for counting them by state.
        .script(
            """
            CREATE TABLE events (
                number INTEGER PRIMARY KEY,
                time INTEGER NOT NULL,
                content BLOB NOT NULL,
                state INTEGER NOT NULL
            ) STRICT;
            CREATE INDEX events_by_state ON events (state);
            """),
        // Separate indexes for the ids of unfinished and of finished uploads. Random ids are on different pages of a large
        // index, so each unfinished upload that is created or expires would change a page of its own.
        .rebuild(
            """
            CREATE TABLE partly_indexed_uploads (
                number INTEGER PRIMARY KEY,
                id BLOB NOT NULL,
                blob TEXT NOT NULL,
                principal TEXT NOT NULL,
                creation BLOB NOT NULL,
                created_at INTEGER NOT NULL,
                expires_at INTEGER,
                epoch INTEGER NOT NULL,
                "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
                length INTEGER,
                phase INTEGER NOT NULL,
                response BLOB,
                reason TEXT,
                intent BLOB,
                digests BLOB NOT NULL
            ) STRICT;
            INSERT INTO partly_indexed_uploads (number, \(columns), principal)
            SELECT number, \(columns), principal FROM uploads;
            DROP TABLE uploads;
            ALTER TABLE partly_indexed_uploads RENAME TO uploads;
            CREATE UNIQUE INDEX unfinished_by_id ON uploads (id) WHERE phase < 2;
            CREATE UNIQUE INDEX finished_by_id ON uploads (id) WHERE phase >= 2;
            CREATE UNIQUE INDEX unfinished_by_blob ON uploads (blob) WHERE phase < 2;
            CREATE INDEX processing_by_id ON uploads (id) WHERE phase = 1;
            CREATE INDEX unfinished_by_expiry ON uploads (expires_at) WHERE phase < 2 AND expires_at IS NOT NULL;
            CREATE INDEX finished_by_expiry ON uploads (expires_at) WHERE phase >= 2;
            """),
    ]

    static let readApplicationID = "PRAGMA application_id"
    static let readUserVersion = "PRAGMA user_version"
    static let readSize = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    static let readUsedSize = """
        SELECT (page_count - freelist_count) * page_size
        FROM pragma_page_count, pragma_freelist_count, pragma_page_size
        """
    static let countTables = "SELECT count(*) FROM sqlite_schema"
    static let quickCheck = "PRAGMA quick_check(1)"
    /// Each statement reads from the root of a table or an index to a leaf, so that the time does not depend on the
    /// number of rows.
    static let spotChecks = [
        "SELECT 1 FROM uploads LIMIT 1", "SELECT 1 FROM uploads WHERE id = x'80' AND phase < 2",
        "SELECT 1 FROM uploads WHERE id = x'80' AND phase >= 2", "SELECT 1 FROM uploads WHERE blob = '8' AND phase < 2",
        "SELECT 1 FROM files LIMIT 1", "SELECT 1 FROM files WHERE name = 'n'",
    ]
    static let integrityCheck = "PRAGMA integrity_check(100)"
    static func setApplicationID() -> String { "PRAGMA application_id = \(applicationID)" }
    static func setUserVersion(_ version: Int) -> String { "PRAGMA user_version = \(version)" }

    /// The number of pages in the log after which a commit copies them to the database. With 1000, the default of
    /// SQLite, pages that change frequently are copied and synchronized several times as often.
    private static let checkpointPages = 4000

    static func configureWriter(_ durability: Durability) -> String {
        """
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = \(durability == .acknowledged ? "FULL" : "NORMAL");
        PRAGMA foreign_keys = ON;
        PRAGMA trusted_schema = OFF;
        PRAGMA cell_size_check = ON;
        PRAGMA secure_delete = ON;
        PRAGMA wal_autocheckpoint = \(checkpointPages);
        """
    }
    static let configureReader = "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF;"
    static let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
    static let vacuum = "VACUUM"

    static let begin = "BEGIN IMMEDIATE"
    static let beginReading = "BEGIN"
    static let commit = "COMMIT"
    static let rollback = "ROLLBACK"

    static let readMark = "SELECT value FROM marks WHERE name = ?"
    static let setMark = "INSERT INTO marks VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2"
    static let countUp = "INSERT INTO marks VALUES (?1, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"

    static let columns = """
        id, blob, creation, created_at, expires_at, epoch, "offset", length, phase, response, reason, intent, digests
        """
    static let insertUpload = """
        INSERT INTO uploads (\(columns), principal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    // A statement uses a partial index only if it has the condition of this index. Most requests are for unfinished
    // uploads, so their index is read first.
    private static let hasID = """
        number = coalesce(
            (SELECT number FROM uploads WHERE id = ?1 AND phase < 2),
            (SELECT number FROM uploads WHERE id = ?1 AND phase >= 2))
        """
    static let selectUpload = "SELECT \(columns) FROM uploads WHERE \(hasID)"
    /// The unfinished and the finished uploads after an id. These statements also work with older versions of the schema.
    static let selectUploadsByPhase = ["phase < 2", "phase >= 2"].map { phase in
        "SELECT \(columns) FROM uploads WHERE id > ?1 AND \(phase) ORDER BY id LIMIT ?2"
    }
    static let selectUploads =
        selectUploadsByPhase.map { "SELECT * FROM (\($0))" }.joined(separator: " UNION ALL ") + " ORDER BY id LIMIT ?2"
    static let selectProcessing = "SELECT id FROM uploads WHERE phase = 1 AND id > ? ORDER BY id LIMIT ?"
    static let countProcessing = "SELECT count(*) FROM uploads WHERE phase = 1"
    static let selectReceiving = """
        SELECT id, blob, "offset" FROM uploads WHERE phase = 0 AND phase < 2 AND id > ? ORDER BY id LIMIT ?
        """
    static let selectExpired = """
        SELECT id FROM uploads WHERE phase < 2 AND expires_at <= ? ORDER BY expires_at LIMIT ?
        """

    // The rows are added up page by page: to sort all rows in one statement, SQLite would need much memory or temporary
    // files.
    static let sumUploads = """
        SELECT principal, phase, count(*), sum(min(coalesce(length, "offset"), 1 << 50)), max(number)
        FROM (
            SELECT number, principal, phase, length, "offset" FROM uploads WHERE number > ? ORDER BY number LIMIT 2000)
        GROUP BY principal, phase
        """
    static let sumFiles = """
        SELECT principal, sum(size), max(name)
        FROM (SELECT name, principal, size FROM files WHERE name > ? ORDER BY name LIMIT 2000)
        GROUP BY principal
        """
    static let selectUsage = "SELECT principal, uploads, reserved, published FROM usage"
    static let removeUsage = "DELETE FROM usage"
    static let insertUsage = "INSERT INTO usage (principal, uploads, reserved, published) VALUES (?, ?, ?, ?)"
    static let selectBlob = "SELECT 1 FROM uploads WHERE blob = ? AND phase < 2"

    static let selectCreations = "SELECT id, phase, creation FROM uploads WHERE id > ? ORDER BY id LIMIT 200"
    static let setCreation = "UPDATE uploads SET creation = ?2 WHERE id = ?1"
    static let deleteUnreadable = "DELETE FROM uploads WHERE id = ?"

    // The fence: with this condition, the statements of a lease that was taken over change no row.
    private static let fence = "WHERE id = ?1 AND epoch <= ?2 AND phase < 2"
    private static let advanced = """
        epoch = ?2, "offset" = max("offset", ?3), length = coalesce(?4, length), digests = ?5
        """
    // A statement that sets `phase` also writes the pages of all indexes, because their conditions have this column.
    static let advance = "UPDATE uploads SET \(advanced) \(fence) AND phase = 0 AND intent IS NULL"
    static let advanceProcessing = "UPDATE uploads SET \(advanced), phase = 0 \(fence) AND phase = 1 AND intent IS NULL"
    static let markProcessing = "UPDATE uploads SET epoch = ?2, phase = 1 \(fence) AND intent IS NULL"
    static let recordIntent = "UPDATE uploads SET epoch = ?2, phase = 1, intent = ?3 \(fence)"
    static let withdrawn = "withdrawn"
    // For an unfinished upload, the column `reason` has no other use.
    static let withdraw = "UPDATE uploads SET epoch = ?2, reason = '\(withdrawn)' \(fence) AND intent IS NOT NULL"
    static let complete = """
        UPDATE uploads SET epoch = ?2, "offset" = max("offset", ?3), phase = 2, response = ?4, expires_at = ?5,
            intent = NULL, digests = ?6, creation = ?7
        \(fence)
        """
    static let invalidate = """
        UPDATE uploads SET epoch = ?2, phase = 3, reason = ?3, expires_at = ?4, intent = NULL, digests = ?5,
            creation = ?6
        \(fence)
        """
    static let limitExpiry = expiringLater.map { later in
        "UPDATE uploads SET expires_at = ?1 WHERE number IN (SELECT number FROM \(later) LIMIT ?2)"
    }
    static let selectExpiringLater = expiringLater.map { later in "SELECT 1 FROM \(later) LIMIT 1" }
    // The condition on the phase makes SQLite use a partial index.
    private static let expiringLater = [
        "uploads WHERE phase < 2 AND expires_at > ?1", "uploads WHERE phase >= 2 AND expires_at > ?1",
    ]
    static let delete = "DELETE FROM uploads WHERE \(hasID) AND epoch <= ?2 RETURNING phase"
    static let removeFinished = """
        DELETE FROM uploads WHERE number IN (
            SELECT number FROM uploads WHERE phase >= 2 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
        RETURNING phase
        """

    private static let fileColumns = "name, principal, size, identity, modified, fields"
    static let insertFile = "INSERT INTO files (\(fileColumns)) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING"
    static let replaceFile = "REPLACE INTO files (\(fileColumns)) VALUES (?, ?, ?, ?, ?, ?)"
    static let removeFile = "DELETE FROM files WHERE name = ?"
    static let selectFile = "SELECT \(fileColumns) FROM files WHERE name = ?"
    static let selectFiles = "SELECT \(fileColumns) FROM files WHERE name > ? ORDER BY name LIMIT ?"

    // States: see ``OutboxEntry/State``.
    private static let eventColumns = "number, content, state"
    static let selectLastEvent = "SELECT max(number) FROM events"
    static let insertEvent = "INSERT INTO events (number, time, content, state) VALUES (?, ?, ?, 0)"
    static let selectEvents = "SELECT \(eventColumns) FROM events WHERE number > ? ORDER BY number LIMIT ?"
    static let selectDueEvents = """
        SELECT \(eventColumns) FROM events NOT INDEXED WHERE number > ? AND state <> 1 ORDER BY number LIMIT ?
        """
    static let selectRetriedEvents = "SELECT \(eventColumns) FROM events WHERE state = 2 ORDER BY number LIMIT ?"
    static let selectEvent = "SELECT state FROM events WHERE number = ?"
    static let countEvents = "SELECT state, count(*) FROM events GROUP BY state"
    static let selectOldestEvent = "SELECT time FROM events WHERE state = 0 ORDER BY number LIMIT 1"
    static let removeEvent = "DELETE FROM events WHERE number = ?"
    static let setEventAside = "UPDATE events SET state = 1 WHERE number = ?"
    static let retryEvent = "UPDATE events SET state = 2 WHERE number = ? AND state = 1"
    static let dropEvents = drop("events")
    static let dropEventsSetAside = drop("events WHERE state = 1")
    private static func drop(_ events: String) -> String {
        """
        DELETE FROM events WHERE number IN (
            SELECT number FROM (SELECT number, time FROM \(events) ORDER BY number LIMIT ?1) WHERE time < ?2)
        RETURNING number
        """
    }
}
