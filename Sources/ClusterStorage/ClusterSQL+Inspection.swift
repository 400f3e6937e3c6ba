/// The SQL of checks and of commands of operators, which can run while servers are running, of metrics, and of the
/// search for objects that nothing needs.
extension ClusterSQL {
    // MARK: Uploads and files

    /// The end of the last piece of a blob, and the number of bytes in its pieces. They differ if a piece is missing.
    private static func coverage(_ blob: String) -> String {
        """
        CROSS JOIN LATERAL (
            SELECT coalesce(max(p.start + p.size), 0)::bigint AS last, coalesce(sum(p.size), 0)::bigint AS bytes
            FROM onward.piece p WHERE p.blob = \(blob)
        ) AS coverage
        """
    }

    /// Rows of uploads after $1 with their pieces.
    static let inspectUploads = """
        SELECT \(columns), coverage.last, coverage.bytes
        FROM onward.upload \(coverage("upload.blob")) WHERE id > $1 ORDER BY id LIMIT $2
        """
    static let inspectFiles = """
        SELECT n.parent, n.name, n.size, coverage.last, coverage.bytes, n.blob, n.modified
        FROM onward.name n \(coverage("n.blob"))
        WHERE NOT n.is_directory AND (n.parent, n.name) > ($1, $2) ORDER BY n.parent, n.name LIMIT $3
        """
    static let hasFile = "SELECT EXISTS (SELECT FROM onward.name WHERE blob = $1)"
    static let inspectRetained = """
        SELECT r.key, coverage.last, coverage.bytes FROM onward.retained r \(coverage("r.blob"))
        WHERE r.key > $1 ORDER BY r.key LIMIT $2
        """
    /// The principals whose usage is not the sum of their uploads and files: the recorded and the counted numbers.
    static let wrongUsage = """
        WITH counted AS (
            SELECT principal, sum(uploads)::bigint AS uploads, sum(reserved)::bigint AS reserved,
                sum(published)::bigint AS published
            FROM (
                SELECT principal, 1 AS uploads, least(coalesce(length, "offset"), 1::bigint << 50) AS reserved,
                    0 AS published
                FROM onward.upload WHERE phase < 2
                UNION ALL
                SELECT principal, 0, 0, size FROM onward.name WHERE principal IS NOT NULL
            ) AS rows GROUP BY principal
        ), pairs AS (
            SELECT coalesce(u.principal, c.principal) AS principal,
                coalesce(u.uploads, 0)::bigint AS uploads, coalesce(c.uploads, 0) AS counted_uploads,
                coalesce(u.reserved, 0)::bigint AS reserved, coalesce(c.reserved, 0) AS counted_reserved,
                coalesce(u.published, 0)::bigint AS published, coalesce(c.published, 0) AS counted_published
            FROM onward.current_usage(NULL) u FULL JOIN counted c ON c.principal = u.principal
        )
        SELECT principal, uploads, reserved, published, counted_uploads, counted_reserved, counted_published FROM pairs
        WHERE (uploads, reserved, published) <> (counted_uploads, counted_reserved, counted_published)
        ORDER BY principal
        """

    // MARK: Objects

    /// A page of the pieces that are in objects, ordered by object and first byte: those after the piece of the object $1
    /// at the byte $2. If $3 is not null, the page ends with the object $3.
    static let inspectObjects = """
        SELECT object, blob, start, size FROM onward.piece
        WHERE object IS NOT NULL AND (object, start) > ($1, $2) AND ($3::text IS NULL OR object <= $3)
        ORDER BY object, start LIMIT $4
        """
    /// The given pieces that still have a row. Parameters: arrays of their objects, blobs, first bytes and sizes.
    static let existingPieces = """
        SELECT p.object, p.blob, p.start, p.size
        FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS o (object, blob, start, size)
        JOIN onward.piece p ON p.blob = o.blob AND p.start = o.start AND p.object = o.object AND p.size = o.size
        ORDER BY p.object, p.start
        """
    /// The unfinished upload, the file (two columns) and the retained request that need the byte $2 of the blob $1.
    static let needs = """
        SELECT u.id, NULL::text, NULL::text, NULL::text FROM onward.upload u
            WHERE u.blob = $1 AND u.phase < 2 AND u."offset" > $2
        UNION ALL SELECT NULL, n.parent, n.name, NULL FROM onward.name n WHERE n.blob = $1
        UNION ALL SELECT NULL, NULL, NULL, r.key FROM onward.retained r WHERE r.blob = $1
        """
    /// Whether a session can store objects that a later transaction names. A transaction ends in less than a minute.
    private static func isLiving(_ session: String) -> String {
        """
        EXISTS (SELECT FROM onward.node n WHERE n.session = \(session)
            AND n.alive_until > clock_timestamp() - interval '1 minute')
        """
    }
    /// The objects in $1 that nothing needs or can need, and whether a server deletes them: see ``PieceCollector``.
    static let unneededObjects = """
        SELECT o.object, onward.session_of(o.object) IS NOT NULL FROM unnest($1::text[]) AS o (object)
        WHERE NOT \(isLiving("onward.session_of(o.object)"))
            AND NOT EXISTS (SELECT FROM onward.piece p WHERE p.object = o.object)
            AND NOT EXISTS (SELECT FROM onward.garbage g WHERE g.object = o.object)
        ORDER BY 1
        """
    /// The sessions in $1 that have ended.
    static let endedSessions = """
        SELECT s.session FROM unnest($1::bigint[]) AS s (session) WHERE NOT \(isLiving("s.session"))
        """

    /// The next blobs after $1 whose pieces nothing needs, and the number of their bytes.
    static let unneededBlobs = """
        SELECT p.blob, sum(p.size)::bigint FROM onward.piece p WHERE p.blob > $1 AND \(isUnneeded("p.blob"))
        GROUP BY p.blob ORDER BY p.blob LIMIT $2
        """
    /// The blobs in $1 whose pieces nothing needs, and the number of their bytes.
    static let stillUnneededBlobs = """
        SELECT p.blob, sum(p.size)::bigint FROM onward.piece p WHERE p.blob = ANY ($1) AND \(isUnneeded("p.blob"))
        GROUP BY p.blob ORDER BY p.blob
        """
    /// The next objects after $1 that have not been needed for $2 milliseconds, and since when, in seconds since 1970.
    static let overdueGarbage = """
        SELECT object, extract(epoch FROM since)::bigint FROM onward.garbage
        WHERE object > $1 AND since <= clock_timestamp() - $2 * interval '1 millisecond' ORDER BY object LIMIT $3
        """

    /// One row for each search. Columns: the number of objects that are not needed, at most a million; the seconds for which
    /// the oldest one has not been needed; the search; the seconds by which its next page is late.
    static let collectionState = """
        SELECT (SELECT count(*) FROM (SELECT FROM onward.garbage LIMIT 1000000) AS g),
            (SELECT extract(epoch FROM clock_timestamp() - since)::bigint FROM onward.garbage ORDER BY since LIMIT 1),
            task, CASE WHEN due = '-infinity' THEN 0
                ELSE greatest(0, extract(epoch FROM clock_timestamp() - due))::bigint END
        FROM onward.collection WHERE task IN ('objects', 'pieces') ORDER BY task
        """

    // MARK: Events

    static let listEvents = """
        SELECT number, content, state FROM onward.event WHERE number > $1 ORDER BY number LIMIT $2
        """
    /// The node that delivers events searches for these events.
    static let retryEvents = "UPDATE onward.event SET state = 2 WHERE number = ANY ($1) AND state = 1"

    // MARK: Retained requests

    static let retainedKeys = "SELECT key FROM onward.retained ORDER BY key"
    static let selectRetained = "SELECT blob, description FROM onward.retained WHERE key = $1"
    static let removeRetained = "DELETE FROM onward.retained WHERE key = $1"

    // MARK: Claims of tasks

    /// Claims a task for a process, unless another process has claimed it. Parameters: the task, a random name of the
    /// claim, which is stored in the column `position`, and the milliseconds after which another process can claim it.
    static let claimTask = """
        INSERT INTO onward.collection AS c (task, position, due)
            VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
            ON CONFLICT (task) DO UPDATE SET position = excluded.position, due = excluded.due
                WHERE c.due <= clock_timestamp()
            RETURNING 1::bigint
        """
    static let extendClaim = """
        UPDATE onward.collection SET due = clock_timestamp() + $3 * interval '1 millisecond'
        WHERE task = $1 AND position = $2
        """
    static let endClaim = "DELETE FROM onward.collection WHERE task = $1 AND position = $2"
}
