import CSQLite
import SystemCalls

/// The error of an SQLite call: extended result code and message (sqlite.org/rescode.html).
struct SQLiteFailure: Error, Sendable {
    var code: Int32
    var systemError: Errno
    var message: String

    var primaryCode: Int32 { code & 0xff }

    func storeError(during operation: String) -> StoreError {
        switch primaryCode {
        case SQLITE_FULL: .insufficientSpace(nil)
        // Only ever by ``UploadCatalog/close(saving:)``.
        case SQLITE_INTERRUPT: .superseded
        case SQLITE_CORRUPT: .damaged(message)
        case SQLITE_NOTADB: .foreignData("the catalog's file is no database")
        default:
            .failure(systemError.rawValue == 0 ? .inputOutput : systemError, during: "\(operation): \(message)")
        }
    }
}
