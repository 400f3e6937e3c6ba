/// The statements of the catalog. The tables and functions are in ``migrations``; the statements of bytes and published
/// files are in ClusterSQL+Files.swift.
enum ClusterSQL {
    /// The results of the functions that change uploads.
    enum Refusal {
        static let superseded: Int64 = 1
        static let exists: Int64 = 2
        static let tooManyUploads: Int64 = 3
        static let quotaExceeded: Int64 = 4
        static let heldElsewhere: Int64 = -1
    }

    // MARK: The schema and the sessions

    static let hasVersion = "SELECT to_regclass('onward.migration') IS NOT NULL"
    static let readVersion = "SELECT max(version)::bigint, max(oldest)::bigint FROM onward.migration"
    /// The clock of the database in microseconds since 1970, and the settings of ``CrashSafety`` that are off.
    static let readClock = "SELECT \(clock)"
    private static let clock = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (\(settingsOff))"
    static let settingsOff = """
        SELECT string_agg(name, ' ' ORDER BY name) FROM unnest(ARRAY['fsync', 'full_page_writes']) AS s (name)
        WHERE current_setting(name) = 'off'
        """

    /// Parameters: the process, the number of its attempt to open a session, its name, the lifetime in milliseconds, whether
    /// the session may deliver events, whether it is exclusive, and the uploads that it adopts, with their fences.
    static let openSession = "SELECT onward.open_session($1, $2, $3, $4, $5, $6, $7, $8)"
    static let renewSession = """
        UPDATE onward.node SET alive_until = clock_timestamp() + $2 * interval '1 millisecond',
            steady_since = CASE WHEN onward.is_recent(alive_until, renewed_at) THEN steady_since ELSE clock_timestamp() END,
            renewed_at = clock_timestamp()
        WHERE session = $1 AND alive_until > clock_timestamp()
        RETURNING \(clock)
        """
    /// Removes the sessions of a process.
    static let closeSessions = "DELETE FROM onward.node WHERE process = $1"
    /// Skips sessions with a running transaction.
    static let removeEndedSessions = """
        DELETE FROM onward.node WHERE session = ANY (ARRAY(
            SELECT session FROM onward.node WHERE NOT onward.is_alive(alive_until) FOR UPDATE SKIP LOCKED))
        """
    /// Ends the transactions of ended sessions, for example of a stopped process, because they keep their locks. A
    /// transaction that waits for a standby server is not ended: it has been committed here, and its end would make it visible
    /// before the standby server has it, so that a client could get a response that is not true after a failover.
    static let endLateTransactions = """
        SELECT pg_terminate_backend(a.pid)
        FROM (SELECT pid, substring(application_name FROM '^onward ([0-9]{1,18})$')::bigint AS session
            FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event IS DISTINCT FROM 'SyncRep') AS a
        WHERE a.session IS NOT NULL AND NOT EXISTS (
            SELECT FROM onward.node n WHERE n.session = a.session AND n.alive_until > clock_timestamp())
        """
    /// Adds changes of the usage to its totals if at least 500 wait. Only the session that delivers events does this, so
    /// that the nodes do not wait for each other. The result is the number of changes, at most 5000.
    static let addUsageChanges = "SELECT onward.add_usage_changes(500) WHERE onward.delivers($1)"
    static let renumber = "SELECT onward.renumber()"
    static let resolveBatches = "SELECT onward.resolve_batches($1)"

    // MARK: Holds

    static let acquire = "SELECT \(columns), holder, fence FROM onward.acquire($1, $2, $3)"
    static let selectFences = "SELECT id, fence FROM onward.upload WHERE id = ANY ($2) AND holder = $1"
    /// Whether the upload exists, and no session has become its holder since the hold with the fence $2.
    static let isCurrent = "SELECT EXISTS (SELECT FROM onward.upload WHERE id = $1 AND fence = $2)"
    static let release = """
        UPDATE onward.upload AS u SET holder = NULL FROM unnest($2::bytea[], $3::bigint[]) AS r (id, fence)
        WHERE u.id = r.id AND u.holder = $1 AND u.fence = r.fence
        """
    static let notify = "SELECT pg_notify($1, $2)"
    /// The commit of the transaction does not wait for the disk or for a standby server. A release and a notification may
    /// be lost: the node that acquires the upload repeats its request, and its own commit waits for all earlier ones.
    /// PostgreSQL commits transactions with notifications one after the other, so one that waits would delay all others.
    static let commitAtOnce = "SET LOCAL synchronous_commit = off"

    // MARK: Changes

    static let beginBatch = "SELECT onward.begin_batch($1, $2)"
    static let lockPrincipals = "SELECT onward.lock_principals($1)"
    /// Writes the row of the session as it is, which shows whether the database accepts changes.
    static let probe = "UPDATE onward.node SET name = name WHERE session = $1"

    static let insertUpload = call("insert_upload", parameters: 16)
    static let advanceUpload = call("advance_upload", parameters: 7)
    /// Checks the limits of a principal. Parameters: the principal, new uploads and bytes, and both limits.
    static let admit = call("admit", parameters: 5)

    private static func call(_ function: String, parameters: Int) -> String {
        let list = (1...parameters).map { "$\($0)" }.joined(separator: ", ")
        return "WITH change AS MATERIALIZED (SELECT onward.\(function)(\(list))::bigint AS refusal)"
    }

    // Parameters: the session, the id, the epoch, and others.
    static let markProcessing = fenced("epoch = $3, phase = 1")
    static let complete = fenced(
        """
        epoch = $3, "offset" = greatest("offset", $4), phase = 2, response = $5, expires_at = $6, digests = $7,
        creation = $8, holder = NULL
        """)
    static let invalidate = fenced(
        "epoch = $3, phase = 3, reason = $4, expires_at = $5, digests = $6, creation = $7, holder = NULL")

    /// A change by the holder: see onward.upload.
    private static func fenced(_ assignments: String) -> String {
        """
        WITH changed AS (
            UPDATE onward.upload SET \(assignments)
            WHERE id = $2 AND holder = $1 AND fence = ($3::bigint >> 32) + 1 AND epoch <= $3 AND phase < 2
            RETURNING 1
        ), change AS MATERIALIZED (
            SELECT CASE WHEN EXISTS (SELECT FROM changed) THEN 0 ELSE \(Refusal.superseded) END::bigint AS refusal
        )
        """
    }

    /// A change that is refused because this session does not hold the upload.
    static let superseded = "WITH change AS MATERIALIZED (SELECT \(Refusal.superseded)::bigint AS refusal)"

    /// A change that is always made.
    static let noRefusal = "WITH change AS MATERIALIZED (SELECT 0::bigint AS refusal)"

    /// The functions that record something together with a change.
    enum Effect: String {
        case putPieces = "put_pieces"
        case recordEvents = "record_events"
        case publish, retain
    }

    /// The statement of a change with effects: each function is called only if the change is not refused. The result is one
    /// row, whose first column has the refusal, or 0.
    /// - Parameter effects: the functions with the numbers of their parameters.
    static func statement(_ change: String, with effects: [(Effect, parameters: Range<Int>)]) -> String {
        let calls = effects.map { effect, numbers in
            let list = numbers.map { "$\($0)" }.joined(separator: ", ")
            return ", CASE WHEN refusal = 0 THEN (SELECT count(*) FROM onward.\(effect.rawValue)(\(list))) END"
        }
        return "\(change) SELECT refusal\(calls.joined()) FROM change"
    }

    static let deleteUploads =
        "SELECT refusal, unfinished, complete, invalid FROM onward.delete_uploads($1, $2, $3, $4, $5)"
    static let removeFinished = """
        WITH removed AS (
            DELETE FROM onward.upload WHERE id = ANY (ARRAY(
                SELECT id FROM onward.upload WHERE phase >= 2 AND expires_at <= $1 ORDER BY expires_at LIMIT $2
                FOR UPDATE SKIP LOCKED))
            RETURNING phase
        )
        SELECT 0::bigint, 0::bigint, count(*) FILTER (WHERE phase = 2), count(*) FILTER (WHERE phase = 3) FROM removed
        """
    static let limitExpiry = """
        UPDATE onward.upload SET expires_at = $1 WHERE id = ANY (ARRAY(
            (SELECT id FROM onward.upload WHERE phase < 2 AND expires_at > $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
        ) || ARRAY(
            (SELECT id FROM onward.upload WHERE phase >= 2 AND expires_at > $1 LIMIT $2 FOR UPDATE SKIP LOCKED)))
        """
    static let removeEvents = "DELETE FROM onward.event WHERE number = ANY ($1)"
    static let setEventsAside = "UPDATE onward.event SET state = 1 WHERE number = ANY ($1)"
    /// Only the server that delivers events drops them: if several servers counted the same surplus, each would drop it.
    static let dropEvents = drop("onward.event")
    // "state > 0" makes the planner use the partial index event_by_state.
    static let dropEventsSetAside = drop("onward.event WHERE state = 1 AND state > 0")
    private static func drop(_ events: String) -> String {
        """
        DELETE FROM onward.event WHERE number = ANY (ARRAY(
            SELECT number FROM (SELECT number, "time" FROM \(events) ORDER BY number LIMIT $1) AS oldest
            WHERE "time" < $2 AND onward.delivers($3)))
        RETURNING number
        """
    }

    // MARK: Reads

    static let columns = """
        id, blob, creation, created_at, expires_at, epoch, "offset", length, phase, response, reason, digests
        """
    static let selectUpload = "SELECT \(columns) FROM onward.upload WHERE id = $1"
    static let selectUploads = "SELECT \(columns) FROM onward.upload WHERE id > $1 ORDER BY id LIMIT $2"
    /// The condition for uploads that the session $1 holds or can acquire.
    private static let isFree = """
        (holder IS NULL OR holder = $1 OR NOT EXISTS (
            SELECT FROM onward.node n WHERE n.session = holder AND onward.is_alive(n.alive_until)))
        """
    // "phase < 2" makes the planner use the partial index.
    static let selectProcessing = """
        SELECT id FROM onward.upload WHERE phase = 1 AND phase < 2 AND id > $2 AND \(isFree)
            AND (holder IS NULL OR holder = $1 OR (SELECT onward.is_steady($1)))
        ORDER BY id LIMIT $3
        """
    static let countProcessing = "SELECT count(*) FROM onward.upload WHERE phase = 1 AND phase < 2"
    static let selectExpired = """
        SELECT id FROM onward.upload WHERE phase < 2 AND expires_at <= $2 AND \(isFree) ORDER BY expires_at LIMIT $3
        """
    static let selectExpiringLater = """
        SELECT EXISTS (SELECT FROM onward.upload WHERE phase < 2 AND expires_at > $1)
            OR EXISTS (SELECT FROM onward.upload WHERE phase >= 2 AND expires_at > $1)
        """
    static let selectBlob = "SELECT EXISTS (SELECT FROM onward.upload WHERE blob = $1 AND phase < 2)"
    static let selectUsage = """
        SELECT principal, uploads::bigint, reserved::bigint, published::bigint FROM onward.current_usage($1)
        WHERE uploads <> 0 OR reserved <> 0 OR published <> 0
        """
    /// The size of all tables and indexes.
    static let readSize = """
        SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'onward'::regnamespace
        """

    private static let fileColumns = "parent, name, principal, size, modified, fields"
    static let selectFile = """
        SELECT \(fileColumns) FROM onward.name WHERE parent = $1 AND name = $2 AND principal IS NOT NULL
        """
    static let selectFiles = """
        SELECT \(fileColumns) FROM onward.name WHERE (parent, name) > ($1, $2) AND principal IS NOT NULL
        ORDER BY parent, name LIMIT $3
        """

    /// Events that a session may read: see onward.event.
    private static let isReadable = "number < onward.end_of_events() AND onward.delivers($1)"
    static let selectEvents = """
        SELECT number, content, state FROM onward.event WHERE number > $2 AND state <> 1 AND \(isReadable)
        ORDER BY number LIMIT $3
        """
    static let selectRetriedEvents = """
        SELECT number, content, state FROM onward.event WHERE state = 2 AND state > 0 AND \(isReadable)
        ORDER BY number LIMIT $2
        """
    static let selectEvent = """
        SELECT EXISTS (SELECT FROM onward.event WHERE number = $2 AND state <> 1) AND onward.delivers($1)
        """
    /// Whether the session delivers events, and the number of the last readable event after $2; null if there is none. The
    /// search reads no rows before $2: while a dump can see deleted rows, they stay in the index.
    static let selectLastEvent = """
        SELECT onward.delivers($1), CASE WHEN onward.delivers($1) THEN (
            SELECT max(number) FROM onward.event WHERE number > $2 AND number < onward.end_of_events()) END
        """
    static let countEvents = """
        SELECT count(*) FILTER (WHERE state <> 1), count(*) FILTER (WHERE state = 1),
            (SELECT "time" FROM onward.event WHERE state = 0 ORDER BY number LIMIT 1)
        FROM onward.event
        """
}
