import ConformanceKit
import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

/// A session's storage directory, and a configuration with short waits.
final class SessionFixture: Sendable {
    let directory: TemporaryDirectory
    /// The storage directory of the transfers.
    let storage: String

    init() throws {
        directory = try TemporaryDirectory()
        storage = directory.path + "/storage"
    }

    func transfers(_ change: (inout TransferClient.Configuration) -> Void = { _ in }) -> TransferClient.Configuration {
        var configuration = TransferClient.Configuration()
        configuration.creation = .optimistic
        configuration.storageDirectory = storage
        configuration.retry.delays = [.zero, .milliseconds(20), .milliseconds(50)]
        configuration.retry.maxRetriesWithoutProgress = 4
        change(&configuration)
        return configuration
    }

    func session(
        _ delegate: (any URLSessionDelegate)? = nil, queue: OperationQueue? = nil,
        configuration: URLSessionConfiguration = .default,
        _ change: (inout TransferClient.Configuration) -> Void = { _ in }
    ) -> ResumableURLSession {
        ResumableURLSession(
            configuration: configuration, delegate: delegate, delegateQueue: queue, transfers: transfers(change))
    }

    /// Writes a file to be uploaded.
    func file(_ bytes: [UInt8], _ name: String = "source.bin") throws -> URL {
        let url = URL(fileURLWithPath: directory.path + "/" + name)
        try Data(bytes).write(to: url)
        return url
    }

    /// The names of the tickets and partial files.
    var stored: [String] { (try? FileManager.default.contentsOfDirectory(atPath: storage)) ?? [] }

    static func request(_ url: String, _ method: String = "GET", _ fields: [String: String] = [:]) throws -> URLRequest
    {
        var request = URLRequest(url: try #require(URL(string: url)))
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }
}

/// Records everything that a session reports to its delegate.
final class SessionRecorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    enum Event: Sendable {
        case response(Int)
        case data([UInt8])
        case sent(Int64, total: Int64, expected: Int64)
        case informational(Int)
        case written(Int64, total: Int64, expected: Int64)
        case resumed(at: Int64, expected: Int64)
        case file([UInt8], path: String)
        case completed(URLError?)
        case invalid
    }

    private struct Entry: Sendable {
        var task: Int
        var event: Event
        var queue: OperationQueue?
    }

    private let entries = Monitor<[Entry]>([])
    private let keptPath: String?

    /// - Parameter keptPath: the path to which finished downloads are moved.
    init(keptPath: String? = nil) {
        self.keptPath = keptPath
    }

    private func note(_ task: URLSessionTask?, _ event: Event) {
        let entry = Entry(task: task?.taskIdentifier ?? 0, event: event, queue: OperationQueue.current)
        entries.withLock { $0.append(entry) }
        entries.notifyAll()
    }

    // MARK: Events

    func events(of task: URLSessionTask? = nil) -> [Event] {
        entries.withLock { $0.filter { task == nil || $0.task == task?.taskIdentifier }.map(\.event) }
    }

    var queues: [OperationQueue?] { entries.withLock { $0.map(\.queue) } }

    /// Waits until an event of the task satisfies `condition`.
    @discardableResult
    func wait<Found>(
        for task: URLSessionTask?, within limit: Duration = .seconds(60), _ condition: (Event) -> Found?
    ) -> Found? {
        let number = task?.taskIdentifier ?? 0
        return entries.wait(until: Deadline(in: limit).nanoseconds) { entries in
            for entry in entries where entry.task == number {
                if let found = condition(entry.event) { return found }
            }
            return nil
        }
    }

    /// Waits until the task ends, and returns whether it ended without an error.
    func succeeds(_ task: URLSessionTask) -> Bool {
        let ending = ending(of: task)
        guard let ending else { return false }
        return ending.error == nil
    }

    /// Waits until the task ends, and returns its error.
    func error(of task: URLSessionTask) throws -> URLError {
        let ending = ending(of: task)
        return try #require(ending?.error, "the task did not end with an error")
    }

    private struct Ending {
        var error: URLError?
    }

    private func ending(of task: URLSessionTask) -> Ending? {
        wait(for: task) { event in
            if case .completed(let error) = event { return Ending(error: error) }
            return nil
        }
    }

    /// Waits for an event that satisfies the condition.
    func receivesEvent(_ task: URLSessionTask?, _ condition: (Event) -> Bool) -> Bool {
        wait(for: task) { condition($0) ? () : nil } != nil
    }

    /// Waits until `count` bytes have been sent or received.
    func awaitBytes(_ count: Int64, of task: URLSessionTask) -> Bool {
        wait(for: task) { event in
            switch event {
            case .sent(_, let total, _) where total >= count: ()
            case .written(_, let total, _) where total >= count: ()
            default: nil
            }
        } != nil
    }

    // MARK: Delegate

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { note(nil, .invalid) }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(task, .completed(error as? URLError))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        note(task, .sent(bytesSent, total: totalBytesSent, expected: totalBytesExpectedToSend))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        note(task, .informational(response.statusCode))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note(dataTask, .response((response as? HTTPURLResponse)?.statusCode ?? 0))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note(dataTask, .data([UInt8](data)))
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let bytes = (FileManager.default.contents(atPath: location.path)).map { [UInt8]($0) } ?? []
        if let keptPath { try? FileManager.default.moveItem(atPath: location.path, toPath: keptPath) }
        note(downloadTask, .file(bytes, path: location.path))
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        note(downloadTask, .written(bytesWritten, total: totalBytesWritten, expected: totalBytesExpectedToWrite))
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        note(downloadTask, .resumed(at: fileOffset, expected: expectedTotalBytes))
    }
}

/// The arguments of a completion handler, for which a test can wait.
final class SessionAnswer<Content: Sendable>: Sendable {
    struct Value: Sendable {
        var content: Content?
        var response: URLResponse?
        var error: (any Error)?
        var status: Int? { (response as? HTTPURLResponse)?.statusCode }
        var urlError: URLError? { error as? URLError }
    }

    private let values = Monitor<[Value]>([])

    var handler: @Sendable (Content?, URLResponse?, (any Error)?) -> Void {
        { self.receive($0, $1, $2) }
    }

    func receive(_ content: Content?, _ response: URLResponse?, _ error: (any Error)?) {
        values.withLock { $0.append(Value(content: content, response: response, error: error)) }
        values.notifyAll()
    }

    func value() throws -> Value {
        try #require(values.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0.first })
    }

    var count: Int { values.withLock { $0.count } }
}

extension Monitor<Bool> {
    /// Waits until the flag is set, and resets it.
    func awaitAndReset() -> Bool {
        wait(until: Deadline(in: .seconds(60)).nanoseconds) { isSet in
            defer { isSet = false }
            return isSet ? true : nil
        } ?? false
    }
}
