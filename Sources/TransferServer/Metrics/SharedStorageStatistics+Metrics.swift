import UploadStorage

/// The metrics of a server that shares a database and an object storage with others.
extension SharedStorageStatistics {
    func add(to exposition: inout Exposition) {
        session.add(to: &exposition)
        holds.add(to: &exposition)
        addObjects(to: &exposition)
        addTransactions(to: &exposition)
        collection.add(to: &exposition)
    }

    private func addObjects(to exposition: inout Exposition) {
        let operations = objects.sorted { $0.key < $1.key }
        exposition.add(
            "onward_object_requests_total", .counter, "Operations on the object storage, by operation and result.",
            operations.flatMap { operation, numbers in
                numbers.counts.sorted { $0.key < $1.key }.map { result, count in
                    .init([("operation", operation), ("result", result)], count)
                }
            })
        exposition.add(
            "onward_object_request_repetitions_total", .counter,
            "Requests to the object storage that were repeated after a temporary error.", repeatedRequests)
        exposition.add(
            histogram: "onward_object_request_duration_seconds",
            "Duration of an operation on the object storage, with its repetitions.",
            operations.map { ([("operation", $0.key)], $0.value.seconds) })
        exposition.add(
            "onward_object_bytes_total", .counter, "Bytes that were stored in objects (put) or read from them (get).",
            operations.filter { ["get", "put"].contains($0.key) }.map {
                .init([("operation", $0.key)], $0.value.bytes)
            })
    }

    private func addTransactions(to exposition: inout Exposition) {
        exposition.add(
            "onward_database_transactions_total", .counter,
            "Transactions of this server, including those that change nothing, by result.",
            transactions.counts.sorted { $0.key < $1.key }.map { .init([("result", $0.key)], $0.value) })
        exposition.add(
            "onward_database_transaction_repetitions_total", .counter,
            "Transactions that were repeated because of another transaction.", repeatedTransactions)
        exposition.add(
            histogram: "onward_database_transaction_duration_seconds",
            "Duration of a transaction, with its repetitions and the wait for a connection.",
            [([], transactions.seconds)])
    }
}

extension SharedStorageStatistics.Session {
    fileprivate func add(to exposition: inout Exposition) {
        exposition.add(
            "onward_session_alive", .gauge, "Whether this server has a session, without which it changes no upload.",
            secondsLeft > 0 ? 1 : 0)
        exposition.add(
            "onward_session_remaining_seconds", .gauge,
            "Time for which the server relies on its session without another renewal; 0 if it has none.",
            [.init([], secondsLeft)])
        exposition.add(
            "onward_session_renewals_total", .counter, "Renewals of the session, by result.",
            [.init([("result", "failed")], failedRenewals), .init([("result", "renewed")], renewals)])
        exposition.add(
            "onward_sessions_lost_total", .counter, "Sessions that ended before the server was stopped.", lost)
    }
}

extension SharedStorageStatistics.Holds {
    fileprivate func add(to exposition: inout Exposition) {
        exposition.add("onward_uploads_held", .gauge, "Unfinished uploads that only this server can change.", held)
        exposition.add(
            "onward_holds_acquired_total", .counter, "Existing uploads that this server has begun to hold.",
            acquired)
        exposition.add(
            "onward_holds_released_on_request_total", .counter,
            "Uploads that were released because another server requested them.", releasedOnRequest)
        exposition.add("onward_holds_lost_total", .counter, "Uploads that were held when a session was lost.", lost)
        exposition.add(
            "onward_hold_requests_waiting", .gauge, "Requests that wait until another server has released an upload.",
            waiting)
    }
}

extension SharedStorageStatistics.Collection {
    fileprivate func add(to exposition: inout Exposition) {
        if let garbage {
            exposition.add(
                "onward_garbage_objects", .gauge,
                "Objects of all servers that are not needed and wait for their deletion, at most a million.", garbage)
            exposition.add(
                "onward_garbage_oldest_age_seconds", .gauge,
                "Time for which the oldest of these objects has not been needed; 0 if there is none.",
                oldestGarbage ?? 0)
            exposition.add(
                "onward_search_overdue_seconds", .gauge,
                "Time for which the next page of the daily search for unneeded objects and pieces is overdue.",
                overdue.sorted { $0.key < $1.key }.map { .init([("search", $0.key)], $0.value) })
        }
        exposition.add(
            "onward_objects_deleted_total", .counter,
            "Objects that this server has deleted: garbage was needed before, orphans were never needed.",
            [.init([("kind", "garbage")], deletedGarbage), .init([("kind", "orphan")], deletedOrphans)])
        exposition.add(
            "onward_collections_total", .counter, "Checks for objects that can be deleted, by result.",
            [.init([("result", "done")], runs - failedRuns), .init([("result", "failed")], failedRuns)])
    }
}
