import CPostgreSQL
import Glibc
import SystemCalls

/// One connection to a server (postgresql.org/docs/current/libpq.html). Only one thread may use it at a time. Each method
/// returns before its deadline, in monotonic nanoseconds. Only the initializer can need more time.
final class DatabaseConnection {
    private let handle: OpaquePointer
    /// Whether the server has become a standby server, to which libpq would not have connected.
    var isReadOnly = false
    /// Whether commits also wait until the synchronous standby servers have applied them, as the operator has set.
    var isAppliedOnStandby = false
    private let notices = Notices()

    /// The time in nanoseconds for the first statement of a connection that was made after the deadline.
    private static let preparationTime: Int64 = 2_000_000_000

    /// Connects. The time until the deadline is divided by the number of hosts, but each of their addresses has at least
    /// two seconds, and the system may need longer to find the addresses. So this can return after the deadline.
    init(_ uri: DatabaseURI, until deadline: Int64) throws(DatabaseError) {
        let addresses = max(2, Int64(uri.hostCount))
        let seconds = max(2, (deadline - SystemClock.monotonicNanoseconds()) / (1_000_000_000 * addresses))
        // If one name occurs more than once, libpq uses the last value.
        let parameters =
            [
                ("fallback_application_name", "onward"), ("connect_timeout", "\(seconds)"), ("keepalives_idle", "10"),
                ("keepalives_interval", "3"), ("keepalives_count", "3"), ("tcp_user_timeout", "10000"),
            ] + uri.parameters.map { ($0.name, $0.value) } + [("client_encoding", "UTF8")]
        var names = parameters.map { strdup($0.0) }
        var values = parameters.map { strdup($0.1) }
        defer { for pointer in names + values { free(pointer) } }
        let handle = names.withConstantPointers { names in
            values.withConstantPointers { values in PQconnectdbParams(names, values, 0) }
        }
        guard let handle else { throw .unavailable("no memory for a connection", isPossiblyCommitted: false) }
        self.handle = handle
        guard PQstatus(handle) == CONNECTION_OK, PQsetnonblocking(handle, 1) == 0 else { throw lost() }
        // Without a receiver, libpq prints the notices of the server.
        _ = PQsetNoticeReceiver(handle, receiveNotice, Unmanaged.passUnretained(notices).toOpaque())
        try prepare(until: max(deadline, SystemClock.monotonicNanoseconds() + Self.preparationTime))
    }

    deinit { PQfinish(handle) }

    /// Whether the server can run another transaction on this connection. If the server was stopped meanwhile, there is
    /// input: a message, or the end of the connection.
    var isReady: Bool {
        !isReadOnly && !isReplicationUncertain && PQstatus(handle) == CONNECTION_OK
            && PQpipelineStatus(handle) == PQ_PIPELINE_OFF
            && !isInTransaction && PQconsumeInput(handle) == 1
            && PQstatus(handle) == CONNECTION_OK && PQisBusy(handle) == 0 && !hasInput
    }

    /// Whether there is input that libpq has not read, such as the message that a server sends before it stops.
    private var hasInput: Bool {
        var entry = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) != 0
    }

    /// The error for a connection that is lost, with libpq's reason.
    func lost(isPossiblyCommitted: Bool = false) -> DatabaseError {
        .unavailable(String(cString: PQerrorMessage(handle)).onOneLine, isPossiblyCommitted: isPossiblyCommitted)
    }

    /// Whether an administrator has ended the wait of a commit for a standby server. The server reports such a commit as
    /// complete, although the standby server may not have it.
    var isReplicationUncertain: Bool { notices.isReplicationUncertain }

    // MARK: - Statements

    var isInTransaction: Bool { PQtransactionStatus(handle) != PQTRANS_IDLE }

    /// Begins a pipeline (postgresql.org/docs/current/libpq-pipeline-mode.html): statements are sent without waiting for
    /// the results of those before.
    func beginPipeline() throws(DatabaseError) {
        if PQenterPipelineMode(handle) != 1 { throw lost() }
    }

    func endPipeline() throws(DatabaseError) {
        if PQexitPipelineMode(handle) != 1 { throw lost() }
    }

    /// Ends the statements of a pipeline, after which its results can be read.
    /// - Returns: whether libpq has accepted the end.
    func synchronizePipeline() -> Bool { PQpipelineSync(handle) == 1 }

    /// Sends one statement; libpq keeps what the socket does not accept.
    /// - Returns: whether libpq has accepted the statement.
    func send(_ statement: DatabaseStatement) -> Bool {
        let parameters = statement.parameters
        // libpq copies all values from one buffer. A null pointer would be NULL, so the buffer is never empty.
        var buffer: [UInt8] = []
        buffer.reserveCapacity(64)
        var starts: [Int] = []
        for parameter in parameters {
            starts.append(buffer.count)
            parameter.append(to: &buffer)
        }
        let lengths = parameters.indices.map { index in
            Int32((index + 1 < starts.count ? starts[index + 1] : buffer.count) - starts[index])
        }
        buffer.append(0)
        return buffer.withUnsafeBytes { bytes in
            let values = parameters.indices.map { index in
                parameters[index] == .null
                    ? nil : bytes.baseAddress.map { ($0 + starts[index]).assumingMemoryBound(to: CChar.self) }
            }
            return PQsendQueryParams(
                handle, statement.sql, Int32(parameters.count), parameters.map(\.typeNumber), values, lengths,
                parameters.map { _ in 1 }, 1) == 1
        }
    }

    /// Sends statements without parameters, as one message.
    func send(script: String) -> Bool { PQsendQuery(handle, script) == 1 }

    /// Waits for the next result of the server.
    /// - Returns: `nil` after the last result of a statement.
    func nextResult(until deadline: Int64) throws(DatabaseError) -> DatabaseResult? {
        while true {
            let unsent = PQflush(handle)
            guard unsent >= 0 else { throw lost() }
            if PQisBusy(handle) == 0 { break }
            try wait(for: unsent == 1 ? POLLIN | POLLOUT : POLLIN, until: deadline)
            guard PQconsumeInput(handle) == 1 else { throw lost() }
        }
        guard let result = PQgetResult(handle) else { return nil }
        if PQstatus(handle) != CONNECTION_OK, PQresultErrorField(result, Int32(ONWARD_PG_SQLSTATE)) == nil {
            PQclear(result)
            throw lost()
        }
        return DatabaseResult(owning: result)
    }

    // MARK: - Notifications

    /// Waits until the server has sent something, and reads it.
    /// - Parameter other: a descriptor whose input ends the wait.
    /// - Returns: the payloads of notifications in their order.
    func notifications(orInputOf other: Int32) throws(DatabaseError) -> [String] {
        try wait(for: POLLIN, orInputOf: other, until: nil)
        guard PQconsumeInput(handle) == 1 else { throw lost() }
        var payloads: [String] = []
        while let notification = PQnotifies(handle) {
            if let payload = notification.pointee.extra { payloads.append(String(cString: payload)) }
            PQfreemem(notification)
        }
        return payloads
    }

    private func wait(for events: Int32, orInputOf other: Int32 = -1, until deadline: Int64?) throws(DatabaseError) {
        var entries = [
            pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0),
            // poll(2) ignores negative descriptors.
            pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            let remaining = deadline.map { $0 - SystemClock.monotonicNanoseconds() }
            if let remaining, remaining <= 0 {
                throw .unavailable("the server has not responded in time", isPossiblyCommitted: false)
            }
            let milliseconds = remaining.map { Int32(clamping: ($0 + 999_999) / 1_000_000) } ?? -1
            let count = poll(&entries, 2, milliseconds)
            if count > 0 { return }
            if count < 0 && errno != EINTR {
                throw .unavailable("poll: \(Errno.current)", isPossiblyCommitted: false)
            }
        }
    }
}

extension [UnsafeMutablePointer<CChar>?] {
    /// Calls `body` with the pointers followed by a null pointer.
    fileprivate mutating func withConstantPointers<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
        let pointers = map { UnsafePointer($0) } + [nil]
        return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
    }
}

/// The reports in the notices of a connection. libpq changes this object on the thread that uses the connection.
private final class Notices {
    var isReplicationUncertain = false
}

private func receiveNotice(_ context: UnsafeMutableRawPointer?, _ notice: OpaquePointer?) {
    guard let context, let function = PQresultErrorField(notice, Int32(ONWARD_PG_FUNCTION)) else { return }
    if String(cString: function) == "SyncRepWaitForLSN" {
        Unmanaged<Notices>.fromOpaque(context).takeUnretainedValue().isReplicationUncertain = true
    }
}
