import ObjectStorage
import PostgreSQL
import SystemCalls
import Testing
import UploadStorage

@testable import ClusterStorage

@Suite struct FailureReportTests {
    private let second: Int64 = 1_000_000_000

    @Test("an error is reported once, and its end after ten seconds without an error")
    func states() {
        var report = FailureReport("the storage")
        #expect(report.succeeded(at: 0) == nil)
        #expect(report.failed("503", "it fails:\n 503", at: second)?.text == "it fails:  503")
        for time in 2...30 { #expect(report.failed("503", "it fails", at: Int64(time) * second) == nil) }
        #expect(report.succeeded(at: 31 * second) == nil && report.succeeded(at: 40 * second - 1) == nil)
        let end = report.succeeded(at: 40 * second)
        #expect(end?.text == "the storage works again; 30 requests failed within 29 s" && end?.isProblem == false)
        #expect(report.succeeded(at: 100 * second) == nil)
        #expect(report.failed("503", "it fails", at: 101 * second)?.isProblem == true)
    }

    @Test("a missing bucket is reported, except for the object that is read before the storage creates the bucket")
    func missingBucket() {
        let observation = ClusterObservation()
        let notes = Monitor<[String]>([])
        observation.onNote { note in notes.withLock { $0.append(note.text) } }
        let error = ObjectError.refused(status: 404, code: "NoSuchBucket", message: "")
        observation.record(.get, error, nanoseconds: 1, bytes: 0, canBucketBeMissing: true)
        #expect(notes.withLock { $0 } == [])
        observation.record(.get, error, nanoseconds: 1, bytes: 0)
        #expect(notes.withLock { $0.count } == 1 && notes.withLock { $0[0] }.contains("404 NoSuchBucket"))
    }

    @Test("a right that the role of the server lacks is reported with the statement that grants it")
    func rights() throws {
        let observation = ClusterObservation()
        let notes = Monitor<[String]>([])
        observation.onNote { note in notes.withLock { $0.append(note.text) } }
        var report = DatabaseReport()
        report.error = .failed(sqlState: "42501", message: "permission denied for database db")
        observation.record(report)
        report.error = .failed(sqlState: "42P01", message: "relation \"onward.node\" does not exist")
        observation.record(report)
        let texts = notes.withLock { $0 }
        try #require(texts.count == 2, "\(texts)")
        #expect(texts[0].hasPrefix("permission denied for database db (SQLSTATE 42501); "))
        #expect(texts[0].contains("GRANT CREATE") && !texts[1].contains("GRANT"), "\(texts)")
    }

    @Test("errors of the store name the database or the object storage, and have no reason that contradicts theirs")
    func storeErrors() {
        let away = StoreError(DatabaseError.unavailable("no connection", isPossiblyCommitted: false))
        #expect("\(away)".hasSuffix(": the database is unavailable: no connection"), "\(away)")
        let keys = ObjectError.refused(status: 0, code: "", message: "the credentials file f cannot be read: reason")
        let unsigned = "\(StoreError(keys, during: "read the object o"))"
        #expect(unsigned.hasPrefix("cannot read the object o: \(keys): "), "\(unsigned)")
        #expect(!unsigned.contains("EACCES"), "\(unsigned)")
    }

    @Test("each kind of error is reported once, and success between errors causes no more reports")
    func kinds() {
        var report = FailureReport("the storage")
        var reports = 0
        for step in 0..<1000 {
            let time = Int64(step) * second
            if report.failed("kind \(step % 3)", "text", at: time) != nil { reports += 1 }
            if report.succeeded(at: time + second / 2) != nil { reports += 1 }
        }
        #expect(reports == 3)
        // Texts of a storage that are always new do not fill the log.
        reports = 0
        for step in 0..<1000 where report.failed("new \(step)", "text", at: 1000 * second) != nil { reports += 1 }
        #expect(reports == 5)
    }
}
