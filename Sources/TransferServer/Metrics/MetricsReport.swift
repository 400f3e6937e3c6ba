import HTTPSemantics
import SystemCalls
import UploadStorage

/// The content of `/metrics` at one moment.
struct MetricsReport: Sendable {
    var counts: ServerCounts
    /// The statistics of the store; `nil` if it cannot provide them.
    var store: StoreStatistics?
    /// The numbers of a storage that several servers share.
    var shared: SharedStorageStatistics?
    var openConnections: Int
    var maxConnections: Int
    var isReady: Bool
    var droppedLogLines: Int
    /// The start of the process in seconds since 1970; `nil` if the system does not report it.
    var processStart: Double?
    var version: String?
    /// The current time by the clock of the store, as in events, in milliseconds since 1970.
    var now: Int64 = SystemClock.realtimeNanoseconds() / 1_000_000

    var text: String {
        var exposition = Exposition()
        addRequests(to: &exposition)
        addUploads(to: &exposition)
        addInterimResponses(to: &exposition)
        addForwardedRequests(to: &exposition)
        addChecks(to: &exposition)
        addEvents(to: &exposition)
        addStorage(to: &exposition)
        shared?.add(to: &exposition)
        addServer(to: &exposition)
        return exposition.text
    }

    private func addRequests(to exposition: inout Exposition) {
        exposition.add(
            "onward_http_requests_total", .counter,
            "Finished requests, by first path segment, method and status; status none: no response was sent.",
            counts.requests.sorted.map { series, count in
                .init([("route", series.route), ("method", series.method), ("status", series.status)], count)
            })
        exposition.add(
            "onward_http_requests_interrupted_total", .counter,
            "Interrupted requests, by reason.",
            counts.interruptions.sorted.map { .init([("reason", $0.key)], $0.count) })
        exposition.add(
            "onward_errors_total", .counter, "Responses with a problem document, by code.",
            counts.errors.sorted.map { .init([("code", $0.key)], $0.count) })
        exposition.add(
            "onward_http_received_bytes_total", .counter, "Bytes of content received.", counts.received)
        exposition.add("onward_http_sent_bytes_total", .counter, "Bytes of content sent.", counts.sent)
    }

    private func addUploads(to exposition: inout Exposition) {
        if let store {
            exposition.add(
                "onward_uploads", .gauge,
                "Upload resources by state; of a complete or invalid upload only the response is kept.",
                [
                    ("receiving", store.receiving), ("processing", store.processing), ("complete", store.complete),
                    ("invalid", store.invalid),
                ].compactMap { state, count in count.map { .init([("state", state)], $0) } })
        }
        if let store {
            exposition.add(
                "onward_uploads_lost_total", .counter,
                "Uploads that became invalid because acknowledged bytes were missing.", store.lost)
        }
        exposition.add("onward_uploads_created_total", .counter, "Upload resources created.", counts.created)
        exposition.add(
            "onward_uploads_completed_total", .counter, "Completed uploads.", counts.completed)
        exposition.add(
            "onward_uploads_expired_total", .counter, "Unfinished uploads that expired and were removed.",
            counts.expired)
        exposition.add(
            "onward_uploads_resumed_total", .counter, "Appends that were accepted at an offset above 0.", counts.resumed
        )
        exposition.add(
            "onward_uploads_taken_over_total", .counter,
            "Requests that ended because another request took their upload over or canceled it.", counts.takenOver)
    }

    private func addInterimResponses(to exposition: inout Exposition) {
        exposition.add(
            "onward_interim_responses_sent_total", .counter,
            "Interim responses (104) sent: with the URL of the upload, or with an offset.",
            [
                .init([("kind", "location")], counts.announcements), .init([("kind", "offset")], counts.offsets),
            ])
        exposition.add(
            "onward_interim_responses_omitted_total", .counter,
            "Requests with content that got no interim response, by reason.",
            counts.omissions.sorted.map { .init([("reason", $0.key)], $0.count) })
    }

    private func addForwardedRequests(to exposition: inout Exposition) {
        if let retained = store?.retained {
            exposition.add(
                "onward_outcomes_unknown", .gauge,
                "Requests to applications whose outcome is unknown; see 'onward outcomes'.", retained)
        }
        exposition.add(
            "onward_origin_requests_total", .counter,
            "Requests to applications, by route and outcome.",
            counts.forwarded.sorted.map { series, count in
                .init([("route", series.route), ("outcome", series.outcome.rawValue)], count)
            })
        exposition.add(
            histogram: "onward_origin_duration_seconds", "Time until the response of an application.",
            counts.forwardedSeconds.sorted { $0.key < $1.key }.map { ([("route", $0.key)], $0.value) })
    }

    private func addChecks(to exposition: inout Exposition) {
        exposition.add(
            "onward_checks_total", .counter, "Checks of files before their publication, by outcome.",
            counts.checks.sorted.map { .init([("outcome", $0.key)], $0.count) })
        exposition.add(
            histogram: "onward_check_duration_seconds",
            "Duration of a check, including its wait for other checks.", [([], counts.checkSeconds)])
    }

    private func addEvents(to exposition: inout Exposition) {
        guard let events = store?.events else { return }
        exposition.add(
            "onward_events", .gauge, "Undelivered events, by state; see 'onward events'.",
            [("waiting", events.waiting ?? 0), ("set-aside", events.setAside)].map { state, count in
                .init([("state", state)], count)
            })
        let age = events.oldest.map { max(0, Double(now - $0) / 1000) } ?? 0
        exposition.add(
            "onward_events_oldest_age_seconds", .gauge, "Age of the oldest event that waits; 0 if there is none.",
            [.init([], age)])
        exposition.add("onward_events_recorded_total", .counter, "Events that were recorded.", events.recorded)
        exposition.add("onward_events_delivered_total", .counter, "Events that were delivered.", events.delivered)
        exposition.add(
            "onward_events_failed_attempts_total", .counter, "Attempts to deliver an event that failed.",
            events.failedAttempts)
        exposition.add(
            "onward_events_dropped_total", .counter,
            "Events that were dropped without a delivery, because they were too old or too many.", events.dropped)
    }

    private func addStorage(to exposition: inout Exposition) {
        func steps(_ step: DurableStep) -> ServerCounts.Steps { counts.steps[step] ?? .init() }
        exposition.add(
            histogram: "onward_offset_commit_duration_seconds",
            "Time to commit an offset to the catalog.",
            [([], steps(.offset).seconds)])
        exposition.add(
            "onward_offset_commit_failures_total", .counter, "Offsets that could not be made durable.",
            steps(.offset).failures)
        let synchronized = [DurableStep.content, .publication]
        exposition.add(
            histogram: "onward_fsync_duration_seconds",
            "Time to move the content of an upload (fdatasync) or a publication (fsync) to stable storage.",
            synchronized.map { ([("kind", $0.rawValue)], steps($0).seconds) })
        exposition.add(
            "onward_fsync_failures_total", .counter, "Synchronizations that failed.",
            synchronized.map { .init([("kind", $0.rawValue)], steps($0).failures) })
        guard let store else { return }
        exposition.add(
            "onward_catalog_changes_total", .counter, "Changes of the catalog.", store.catalogChanges)
        exposition.add(
            "onward_catalog_transactions_total", .counter, "Transactions that changed the catalog.",
            store.catalogTransactions)
        exposition.add(
            "onward_store_size_bytes", .gauge,
            "Bytes in the data directory: published files, declared sizes of unfinished uploads (current sizes if not declared), and the catalog.",
            [
                ("files", store.publishedBytes), ("uploads", store.reservedBytes), ("catalog", store.catalogBytes),
            ].compactMap { kind, bytes in bytes.map { .init([("kind", kind)], $0) } })
        guard let free = store.freeBytes, let capacity = store.capacityBytes, let minFree = store.minFreeBytes else {
            return
        }
        exposition.add(
            "onward_store_free_bytes", .gauge, "Free bytes of the data directory's file system.", free)
        exposition.add(
            "onward_store_capacity_bytes", .gauge, "Bytes of the data directory's file system.", capacity)
        exposition.add(
            "onward_store_min_free_bytes", .gauge, "Free bytes below which new uploads are rejected.", minFree)
    }

    private func addServer(to exposition: inout Exposition) {
        exposition.add("onward_connections", .gauge, "Open connections.", openConnections)
        exposition.add(
            "onward_connections_limit", .gauge, "Maximum number of open connections.", maxConnections)
        exposition.add(
            "onward_connections_refused_total", .counter,
            "Connections closed at the limit: rejected new connections, and open connections closed to make room.",
            counts.connectionsAtLimit)
        exposition.add("onward_ready", .gauge, "Whether /readyz responds with 200.", isReady ? 1 : 0)
        exposition.add(
            "onward_log_lines_dropped_total", .counter,
            "Log lines dropped because standard error accepted nothing, or failed.", droppedLogLines)
        exposition.add(
            "onward_build_info", .gauge, "Always 1; the label has the version of the program.",
            [.init([("version", version ?? "unknown")], 1)])
        if let processStart {
            exposition.add(
                "process_start_time_seconds", .gauge, "Start of the process in seconds since 1970.",
                [.init([], processStart)])
        }
    }
}

/// Serves `/metrics` to tokens that may read everything or have the prefix `/metrics/`. A server without tokens serves
/// it to every authorized request.
struct MetricsEndpoint {
    let service: TransferService
    let request: RequestContext
    let identity: Identity

    private static let processStart = ProcessControl.startSeconds()

    func response() -> Response {
        if let refusal = service.refusal(of: identity, .readMetrics, at: service.routes.metricsPath) {
            return Response(refusal)
        }
        guard request.method == .get || request.method == .head else {
            return Response(ProblemDetails.methodNotAllowed, fields: ["Allow": "GET, HEAD"])
        }
        let fields: Fields = ["Content-Type": Exposition.mediaType, "Cache-Control": "no-store"]
        return Response(status: 200, fields: fields, content: Array(report.text.utf8))
    }

    private var report: MetricsReport {
        MetricsReport(
            counts: service.metrics.snapshot, store: try? service.store.statistics(),
            shared: service.store.sharedStatistics,
            openConnections: service.connections.count,
            maxConnections: service.configuration.maxConnections,
            isReady: service.unreadiness.isEmpty, droppedLogLines: service.log.droppedLines,
            processStart: Self.processStart,
            version: service.configuration.version, now: service.store.configuration.clock().wall / 1_000_000)
    }
}
